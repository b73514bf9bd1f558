// SPDX-License-Identifier: Apache-2.0

package published

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Openvswitch is what a cell lacks if Open vSwitch has no datapath in the kernel.
const Openvswitch = "openvswitch"

// netem is the discipline that delays an underlay.
const netem = "netem"

// Lab is what the lab of this host can do.
type Lab struct {
	// Off is why no cell is to be measured there; empty: it may be.
	Off string
	// Obstacle is why there can be no guest with a kernel; empty: there can be.
	Obstacle func(chain.VMKernel) string
	// Datapath says that this host's kernel has Open vSwitch's datapath.
	Datapath bool
}

// debianGeneric is how the versions of Debian's generic kernels end.
const debianGeneric = "-amd64"

// Lacks are the features of a kernel that a cell needs and this host's has not, by
// the names that package lab gives them; a kernel that it must be and that this one
// is not stands by its flavour.
func Lacks(inv *inventory.Inventory, datapath bool, c experiment.Cell) []string {
	lacks := slices.DeleteFunc(features(c), func(f string) bool {
		if f == Openvswitch {
			return datapath
		}
		item := inventory.Find(inv.Qdiscs, f)
		return item != nil && item.Status != inventory.Missing
	})
	if ownKernel(c) {
		return lacks
	}
	generic := strings.HasSuffix(inv.Host.Kernel, debianGeneric) && !inv.Host.Realtime
	if c.Kernel == chain.VMKernelGeneric && !generic || c.Kernel == chain.VMKernelRT && !inv.Host.Realtime {
		lacks = append(lacks, string(c.Kernel))
	}
	return lacks
}

// features are what a cell needs of a kernel, each once: queueing disciplines, and
// Open vSwitch's datapath.
func features(c experiment.Cell) []string {
	var all []string
	for _, kind := range []string{c.Qdisc, c.Queue, c.FarQueue} {
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
	return all
}

// HasDatapath reports whether this host's kernel has Open vSwitch's datapath.
func HasDatapath() bool { return host.HasNetlinkFamily("ovs_datapath") }

// inLab reports whether this host is itself a guest of the lab.
func inLab(inv *inventory.Inventory) bool {
	return slices.Contains(strings.Fields(inv.Host.CmdLine), inventory.LabParameter)
}

// flavour is the kernel of the guest that a cell is measured in.
func flavour(c experiment.Cell) chain.VMKernel {
	if c.Kernel == chain.VMKernelRT {
		return chain.VMKernelRT
	}
	return chain.VMKernelGeneric
}

// Divide says which cells are measured in a guest of the lab, with which kernel, and
// of those that cannot be measured at all why; both by the names of the cells.
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

// shortfall says in words what a cell lacks here.
func shortfall(lacks []string) string {
	last := lacks[len(lacks)-1]
	if last == string(chain.VMKernelGeneric) || last == string(chain.VMKernelRT) {
		return fmt.Sprintf("this kernel is not Debian's %s one", last)
	}
	return "this kernel has no " + strings.Join(lacks, ", ")
}

// obstacle is why a cell that this kernel cannot run is not measured in the lab.
func (l Lab) obstacle(inv *inventory.Inventory, c experiment.Cell) string {
	switch {
	case inLab(inv):
		return "this is the lab's already"
	case c.Runtime == chain.RuntimeVM:
		return "nested emulation: a guest of the lab runs no machines"
	case l.Off != "":
		return l.Off
	}
	return l.Obstacle(flavour(c))
}

// Flavours are the kernels of the guests that a run takes, in the order in which
// they are booted.
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

// PartDir is the directory within that of a run in which a guest leaves its part.
func PartDir(dir string, kernel chain.VMKernel) string {
	return filepath.Join(dir, "lab-"+string(kernel))
}

// labShare is how much of the time of a run that is limited its lab takes at most.
const labShare = 0.4

// labLeft is what of that is left to each guest that is still to measure.
func labLeft(run *report.ExperimentsRun) time.Duration {
	open := slices.DeleteFunc(Flavours(run), func(k chain.VMKernel) bool { return slices.Contains(run.LabDone, k) })
	left := time.Duration(labShare*float64(run.AtMost)) - run.Took
	return max(time.Second, left/time.Duration(max(1, len(open))))
}

// Part is what a guest measures of a run: those rows, for so many rounds. Whose
// figures they are and what the guest cannot run, the guest says itself.
func Part(run *report.ExperimentsRun, kernel chain.VMKernel) *report.ExperimentsRun {
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
	if run.AtMost > 0 {
		part.AtMost = labLeft(run)
	}
	return part
}

// Adopt is what a guest makes of the part that it is to measure, or to go on with.
// What is not a guest has no business with it. The guest's command line, and by, are
// whatever they are there: who began the whole run has started both.
func Adopt(part *report.ExperimentsRun, by report.Program, inv *inventory.Inventory) error {
	if !inLab(inv) {
		return errors.New("a guest of the lab measures this part of another run: resume that run")
	}
	if part.Host.Kernel == "" {
		part.Host = inv.Host
	}
	part.Program, part.Host.CmdLine = by, inv.Host.CmdLine
	_, part.Skipped = Divide(inv, Lab{Datapath: HasDatapath()}, Cells(part.Experiments))
	return nil
}

// Merge takes the part that a guest has measured into the run that it is of. failed
// is why it did not end: what was not measured then has that reason.
func Merge(s *Dir, kernel chain.VMKernel, failed error) error {
	part, err := report.LoadExperiments(PartDir(s.Path, kernel))
	if err != nil {
		return fmt.Errorf("what the lab guest has left: %w", err)
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
		s.Run.NoLimit = "in a guest of the lab: " + part.Run.NoLimit
	}
	for cell, why := range part.Run.Skipped {
		skip(s.Run, cell, "in a guest of the lab: "+why)
	}
	for _, c := range labCells(s.Run, kernel) {
		measured := slices.ContainsFunc(part.Trials, func(t record.Trial) bool { return t.Experiment != nil && t.Experiment.Cell == c.String() })
		if failed != nil && !measured {
			skip(s.Run, c.String(), "the guest of the lab failed: "+failed.Error())
		}
	}
	return nil
}

func skip(run *report.ExperimentsRun, cell, why string) {
	delete(run.Lab, cell)
	run.Skipped[cell] = why
}

// What a guest of the lab takes besides its cells: to boot, and to be looked at.
const (
	labBoot    = 35 * time.Second
	labBootKVM = 8 * time.Second
)

// emulation is how many times as long it takes to bring a cell up and down if
// the CPUs are emulated; what sleeps meanwhile takes no longer.
const emulation = 5

// slower is what a cell takes where its run is measured.
func slower(run *report.ExperimentsRun, d time.Duration) time.Duration {
	if run.Part && run.Emulated {
		return d + (emulation-1)*overhead
	}
	return d
}

// labEstimate is about how long the lab takes of a run that is all to be done.
func labEstimate(run *report.ExperimentsRun) time.Duration {
	var sum time.Duration
	for _, kernel := range Flavours(run) {
		part := Part(run, kernel)
		if slices.Contains(run.LabDone, kernel) {
			continue
		}
		sum += labBootKVM
		if run.Emulated {
			sum += labBoot - labBootKVM
		}
		sum += Estimate(part)
	}
	return sum
}

// patienceOf is how long a cell may take beside ten trials.
func patienceOf(run *report.ExperimentsRun) time.Duration {
	if run.Part && run.Emulated {
		return emulation * patience
	}
	return patience
}
