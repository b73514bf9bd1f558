// SPDX-License-Identifier: Apache-2.0

package published

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/function/lab"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Openvswitch is what a cell lacks if the kernel has no Open vSwitch datapath.
const Openvswitch = "openvswitch"

const (
	netem = "netem" // the qdisc that delays an underlay
	numa  = "numa"  // what a machine with one NUMA node lacks
)

// Lab describes what this host's lab can do.
type Lab struct {
	// Off is why no cell may be measured there; empty: it may.
	Off string
	// Obstacle is why no guest can run a given kernel; empty: one can.
	Obstacle func(chain.VMKernel) string
	// Datapath means that this host's kernel has Open vSwitch's datapath.
	Datapath bool
}

// Lacks are the features that a cell needs and this host lacks, by package
// lab's names. A required kernel other than this one is listed by its flavour.
func Lacks(inv *inventory.Inventory, datapath bool, c experiment.Cell) []string {
	lacks := slices.DeleteFunc(features(c), func(f string) bool {
		switch f {
		case Openvswitch:
			return datapath
		case numa:
			return inv.Host.NUMANodes >= c.Nodes
		}
		item := inventory.Find(inv.Qdiscs, f)
		return item != nil && item.Usable()
	})
	if ownKernel(c) {
		return lacks
	}
	if c.Kernel != "" && !lab.Runs(inv.Host, guest.Flavour(c.Kernel)) {
		lacks = append(lacks, string(c.Kernel))
	}
	return lacks
}

// features are a cell's requirements on kernel and machine, each once: queueing
// disciplines, Open vSwitch's datapath, and NUMA nodes.
func features(c experiment.Cell) []string {
	var all []string
	for _, kind := range []string{c.Qdisc, c.Queue, c.FarQueue} {
		if c.Face == chain.FaceNative {
			break // libdray has them all
		}
		if kind != "" && !slices.Contains(all, kind) {
			all = append(all, kind)
		}
	}
	if c.Delay > 0 {
		all = append(all, netem)
	}
	if c.Datapath == experiment.DatapathKernel {
		all = append(all, Openvswitch)
	}
	if c.Nodes > 0 {
		all = append(all, numa)
	}
	return all
}

// HasDatapath reports whether this host's kernel has Open vSwitch's datapath.
func HasDatapath() bool { return host.HasNetlinkFamily("ovs_datapath") }

// inLab reports whether this host is itself a lab guest.
func inLab(inv *inventory.Inventory) bool {
	return slices.Contains(strings.Fields(inv.Host.CmdLine), inventory.LabParameter)
}

// flavour is the kernel of a cell's guest.
func flavour(c experiment.Cell) chain.VMKernel {
	return cmp.Or(c.Kernel, chain.VMKernelGeneric)
}

// Divide returns which cells are measured in a lab guest, with which kernel, and why
// others cannot be measured at all; both by cell name.
func Divide(inv *inventory.Inventory, l Lab, cells []experiment.Cell) (inGuest map[string]chain.VMKernel, skipped map[string]string) {
	inGuest, skipped = map[string]chain.VMKernel{}, map[string]string{}
	for _, c := range cells {
		lacks := Lacks(inv, l.Datapath, c)
		if len(lacks) == 0 {
			if reason := obstacle(inv, c); reason != "" {
				skipped[c.String()] = reason
			}
			continue
		}
		if reason := l.obstacle(inv, c); reason != "" {
			skipped[c.String()] = shortfall(lacks) + ": " + reason
			continue
		}
		inGuest[c.String()] = flavour(c)
	}
	return inGuest, skipped
}

// shortfall describes what a cell lacks here.
func shortfall(lacks []string) string {
	last := lacks[len(lacks)-1]
	if last == string(chain.VMKernelLowLatency) {
		return "this kernel is not Debian's generic one with " + guest.FullPreemption
	}
	if last == string(chain.VMKernelGeneric) || last == string(chain.VMKernelRT) {
		return fmt.Sprintf("this kernel is not Debian's %s one", last)
	}
	if last == numa {
		return "this machine has one NUMA node"
	}
	return "this kernel has no " + strings.Join(lacks, ", ")
}

// obstacle is why a cell that this kernel cannot run is not measured in the lab.
func (l Lab) obstacle(inv *inventory.Inventory, c experiment.Cell) string {
	switch {
	case inLab(inv):
		return "this is already a lab guest"
	case c.Runtime == chain.RuntimeVM:
		return "nested emulation: a lab guest cannot run virtual machines"
	case c.Runtime == chain.RuntimeDocker:
		return "no Docker daemon runs in a lab guest"
	case l.Off != "":
		return l.Off
	}
	return l.Obstacle(flavour(c))
}

// Flavours are the kernels of a run's guests, in boot order.
func Flavours(run *report.ExperimentsRun) []chain.VMKernel {
	list := slices.Collect(maps.Values(run.Lab))
	slices.Sort(list)
	return slices.Compact(list)
}

// Needs are the features that the guest with a kernel must have.
func Needs(run *report.ExperimentsRun, kernel chain.VMKernel) []string {
	var all []string
	for _, c := range labCells(run, kernel) {
		all = append(all, features(c)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func labCells(run *report.ExperimentsRun, kernel chain.VMKernel) []experiment.Cell {
	var cells []experiment.Cell
	for _, c := range Cells(run.Experiments) {
		if run.Lab[c.String()] == kernel {
			cells = append(cells, c)
		}
	}
	return cells
}

// quickLabRounds is how often the quick profile measures a cell in an emulated
// guest, if it takes several times as long and decides no claim.
const quickLabRounds = 1

// LabRounds is how often each cell is measured in the lab.
func LabRounds(run *report.ExperimentsRun, emulated bool) int {
	if emulated && run.Profile == Quick {
		return min(quickLabRounds, run.Rounds)
	}
	return run.Rounds
}

// PartDir is the directory, within a run's, in which a guest leaves its part.
func PartDir(dir string, kernel chain.VMKernel) string {
	return filepath.Join(dir, "lab-"+string(kernel))
}

// labShare is the lab's maximum share of a time-limited run.
const labShare = 0.4

// labLeft is the share of that time for the next guest. The remaining guests share what is
// left by how long their cells take: one may have ten times as many as another.
func labLeft(run *report.ExperimentsRun, kernel chain.VMKernel) time.Duration {
	left := time.Duration(labShare*float64(run.AtMost)) - run.Took
	var all time.Duration
	for _, k := range Flavours(run) {
		if !slices.Contains(run.LabDone, k) {
			all += labTime(run, k)
		}
	}
	share := float64(labTime(run, kernel)) / float64(max(1, all))
	return max(time.Second, time.Duration(share*float64(left)))
}

// labTime is roughly how long all cells of a guest take, and its boot.
func labTime(run *report.ExperimentsRun, kernel chain.VMKernel) time.Duration {
	return bootTime(run) + Estimate(unlimited(run, kernel))
}

// bootTime is roughly how long a lab guest takes to boot.
func bootTime(run *report.ExperimentsRun) time.Duration {
	if run.Emulated {
		return labBoot
	}
	return labBootKVM
}

// Part is a guest's part of a run: those rows, for so many rounds. The guest
// itself records whose figures they are, and what it cannot run.
func Part(run *report.ExperimentsRun, kernel chain.VMKernel) *report.ExperimentsRun {
	part := unlimited(run, kernel)
	if run.AtMost > 0 {
		part.AtMost = labLeft(run, kernel)
	}
	return part
}

// unlimited is that part without a time limit.
func unlimited(run *report.ExperimentsRun, kernel chain.VMKernel) *report.ExperimentsRun {
	part := &report.ExperimentsRun{
		Schema: run.Schema, ID: run.ID, Profile: run.Profile, Rounds: run.LabRounds, Trial: run.Trial, Started: time.Now(), Seed: run.Seed,
		Program: run.Program, Part: true, Emulated: run.Emulated, Skipped: map[string]string{},
	}
	for _, e := range run.Experiments {
		rows := slices.DeleteFunc(slices.Clone(e.Rows), func(r experiment.Row) bool {
			return r.NotRun != "" || run.Lab[r.Cell.String()] != kernel
		})
		if len(rows) > 0 {
			e.Rows, e.Claims = rows, nil
			part.Experiments = append(part.Experiments, e)
		}
	}
	return part
}

// Adopt prepares a part for measurement in a guest, or for resumption. It refuses to
// run outside a guest. The command line and by are the guest's own: whoever began
// the whole run has started both.
func Adopt(part *report.ExperimentsRun, by report.Program, inv *inventory.Inventory) error {
	if !inLab(inv) {
		return errors.New("a lab guest measures this part of another run: resume that run")
	}
	if part.Host.Kernel == "" {
		part.Host = inv.Host
	}
	part.Program, part.Host.CmdLine = by, inv.Host.CmdLine
	_, part.Skipped = Divide(inv, Lab{Datapath: HasDatapath()}, Cells(part.Experiments))
	return nil
}

// Merge adds a guest's measured part to its run. failed is why the guest did not
// finish: unmeasured rows get that reason.
func Merge(s *Dir, kernel chain.VMKernel, failed error) error {
	part, err := report.LoadExperiments(PartDir(s.Path, kernel))
	if err != nil {
		return fmt.Errorf("results of the lab guest: %w", err)
	}
	order := len(s.Done)
	for _, t := range part.Trials {
		if s.Done[t.ID] {
			continue
		}
		t.Order = order
		order++
		if err := s.Sink.Write(t); err != nil {
			return err
		}
		s.Done[t.ID] = true
	}
	if part.Run.NoLimit != "" {
		s.Run.NoLimit = "in a lab guest: " + part.Run.NoLimit
	}
	for cell, why := range part.Run.Skipped {
		skip(s.Run, cell, "in a lab guest: "+why)
	}
	for _, c := range labCells(s.Run, kernel) {
		measured := slices.ContainsFunc(part.Trials, func(t record.Trial) bool { return t.Experiment != nil && t.Experiment.Cell == c.String() })
		if failed != nil && !measured {
			skip(s.Run, c.String(), "the lab guest failed: "+failed.Error())
		}
	}
	return nil
}

func skip(run *report.ExperimentsRun, cell, why string) {
	delete(run.Lab, cell)
	run.Skipped[cell] = why
}

// A lab guest's time in addition to its cells: for booting and observation.
const (
	labBoot    = 35 * time.Second
	labBootKVM = 8 * time.Second
)

// emulation is the factor by which emulated CPUs slow bringing a cell up and
// down; sleeps take no longer.
const emulation = 5

// slower is a cell's duration where its run is measured.
func slower(run *report.ExperimentsRun, d time.Duration) time.Duration {
	if run.Part && run.Emulated {
		return d + (emulation-1)*overhead
	}
	return d
}

// labEstimate is roughly how long the lab takes in a complete run.
func labEstimate(run *report.ExperimentsRun) time.Duration {
	var sum time.Duration
	for _, kernel := range Flavours(run) {
		part := Part(run, kernel)
		if slices.Contains(run.LabDone, kernel) {
			continue
		}
		sum += bootTime(run) + Estimate(part)
	}
	return sum
}

// patienceOf is a cell's time limit in addition to ten trials.
func patienceOf(run *report.ExperimentsRun) time.Duration {
	if run.Part && run.Emulated {
		return emulation * patience
	}
	return patience
}
