// SPDX-License-Identifier: Apache-2.0

// Package published runs published experiments: each cell is brought up and
// measured once in each round, in a new random order.
package published

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/measure/bench"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/matrix"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// Profile is how long to measure.
type Profile struct {
	Name   string
	Rounds int
	Trial  time.Duration
}

// Quick is the default profile: it omits slow cells.
const Quick = "quick"

// Profiles are all profiles. Both have the five pairs that a claim requires.
var Profiles = []Profile{
	{Quick, 5, time.Second},
	{"paper", 100, 10 * time.Second},
}

// FindProfile is the profile of that name.
func FindProfile(name string) (Profile, error) {
	for _, p := range Profiles {
		if p.Name == name {
			return p, nil
		}
	}
	return Profile{}, fmt.Errorf("no profile %q: write quick or paper", name)
}

// Cells are the experiments' cells, each once.
func Cells(experiments []experiment.Experiment) []experiment.Cell {
	var cells []experiment.Cell
	for _, e := range experiments {
		for _, r := range e.Rows {
			if r.NotRun == "" && !slices.Contains(cells, r.Cell) {
				cells = append(cells, r.Cell)
			}
		}
	}
	return cells
}

// obstacle is why a cell cannot be measured here; empty if it can.
func obstacle(inv *inventory.Inventory, c experiment.Cell) string {
	if c.Tool == experiment.ToolCyclictest {
		if missing := missingPrograms(c); missing != "" || c.Runtime == "" {
			return missing
		}
	}
	if c.Tool == experiment.ToolSpin || c.Tool == experiment.ToolSockets || c.Tool == experiment.ToolPool {
		if missing := missingPrograms(c); missing != "" {
			return missing
		}
	}
	if p, ok := probes[c.Tool]; ok && p.text == nil {
		return ""
	}
	if c.Tool == experiment.ToolImage {
		if why := imageObstacle(c); why != "" {
			return why
		}
	}
	if recipe, ok := builtImages[c.Tool]; ok {
		if why := notBuilt(recipe); why != "" {
			return why
		}
	}
	if c.Runtime == chain.RuntimeVM && inLab(inv) {
		return "nested emulation: this host is itself a lab guest"
	}
	if rt := inventory.Find(inv.Runtimes, string(c.Runtime)); rt == nil {
		return fmt.Sprintf("this build has no runtime %s", c.Runtime)
	} else if !rt.Usable() {
		return fmt.Sprintf("runtime %s: %s", c.Runtime, rt.Reason)
	}
	if c.Transport != "" && inv.Transport(c.Transport) == nil {
		return "this build has no transport " + c.Transport
	}
	if c.Tool == experiment.ToolFrames {
		for _, row := range bench.Rows(matrixOf(c, time.Second), inv) {
			if row.Skipped != "" {
				return row.Skipped
			}
		}
		return ""
	}
	_, _, _, err := prepare(inv, c)
	var infeasible *plan.Infeasible
	if errors.As(err, &infeasible) && len(infeasible.Plan.Violations) > 0 {
		v := infeasible.Plan.Violations[0]
		return v.Constraint + ": " + v.Reason
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func missingPrograms(c experiment.Cell) string {
	programs := map[string]string{}
	switch c.Tool {
	case experiment.ToolCyclictest:
		programs["cyclictest"] = "rt-tests"
	case experiment.ToolSpin:
		programs["oslat"] = "rt-tests"
	}
	if c.Tool == experiment.ToolPool && c.State == "" {
		programs[storeProgram] = storeProgram // a package of that name
	}
	if c.KernelFace != "" {
		programs[instrument.Testpmd] = "dpdk"
	}
	if c.Stress {
		programs["stress-ng"] = "stress-ng"
	}
	for program, pkg := range programs {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Sprintf("%s is missing (apt-get install %s)", program, pkg)
		}
	}
	return ""
}

// matrix is the matrix of one cell that draygen measures.
func matrixOf(c experiment.Cell, trial time.Duration) *matrix.Matrix {
	return &matrix.Matrix{
		APIVersion: parse.APIVersion, Kind: matrix.Kind, Name: "experiment", Transports: []string{c.Transport}, Forwarding: c.Forwarding, Batch: c.Batch, NoHzFull: c.NoHzFull, Faces: []chain.Face{c.Face},
		Runtimes: []chain.RuntimeName{c.Runtime}, Sizes: []matrix.FrameSize{c.Size}, Loads: []matrix.Load{c.Offered()},
		Image: dockerImage(c), VNFs: []matrix.VNF{c.VNF}, Repetitions: 1, Trial: units.Duration(trial), Privileged: true,
	}
}

// Names in the cells' chains.
const (
	chainName        = "experiment"
	client, server   = "a", "b"
	clientPort, sink = "p0", "p1"
)

// ready is what a function writes once it has started.
const ready = "dray-ready"

// prepare returns the chain of a cell that draygen does not measure, with its
// text and its plan.
func prepare(inv *inventory.Inventory, c experiment.Cell) (*chain.Chain, []byte, *plan.Plan, error) {
	text := chainText(inv, c)
	parsed, err := chain.Parse("chain of "+c.String(), text)
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := plan.Make(parsed, inv)
	return parsed, text, p, err
}

func chainText(inv *inventory.Inventory, c experiment.Cell) []byte {
	head := fmt.Sprintf("apiVersion: %s\nkind: %s\nname: %s\npolicy: {on_infeasible: warn}\n", parse.APIVersion, chain.Kind, chainName)
	if p, ok := probes[c.Tool]; ok {
		return []byte(head + p.text(inv, c))
	}
	if c.Tool == experiment.ToolStart {
		return []byte(head + fmt.Sprintf("functions:\n  - {name: %s, runtime: %s%s%s, command: [sh, -c, \"echo %s; exec sleep infinity\"]}\n", client, c.Runtime, imageField(c), memoryText(c), ready))
	}
	return []byte(head + pairText(c))
}

// pairText are two functions and their link.
func pairText(c experiment.Cell) string {
	var b strings.Builder
	b.WriteString(hostsText(c) + "functions:\n")
	for i, f := range []string{client, server} {
		own := lineText(c)
		if c.FarQueue != "" && f == server {
			own = qos(c, c.FarQueue)
		}
		fmt.Fprintf(&b, "  - {name: %s,%s runtime: %s%s%s, ports: [{name: p%d, ip: 10.99.0.%d/24%s}]}\n", f, hostText(c, i), c.Runtime, imageField(c), machineText(c), i, i+1, own)
	}
	fmt.Fprintf(&b, "links:\n  - {name: link, ends: [%s.%s, %s.%s], transport: %s%s%s}\n", client, clientPort, server, sink, c.Transport, forwardingText(c), qos(c, c.Queue))
	return b.String()
}

// forwardingText is how a cell's switch forwards, as a field of a link.
func forwardingText(c experiment.Cell) string {
	if c.Forwarding == "" {
		return ""
	}
	return fmt.Sprintf(", forwarding: %s", c.Forwarding)
}

// memoryText is the memory of a cell's machine, as a field of its function.
func memoryText(c experiment.Cell) string {
	if c.Memory == 0 {
		return ""
	}
	return fmt.Sprintf(", memory: %v", c.Memory)
}

// machineText is a cell's requirements on its functions' machines, as a field of
// the functions.
func machineText(c experiment.Cell) string {
	if c.VMRuntime == "" {
		return ""
	}
	return fmt.Sprintf(", vm: {runtime: %s}", c.VMRuntime)
}

// hostsText are the simulated hosts of a cell's functions.
func hostsText(c experiment.Cell) string {
	if c.Hosts == 0 {
		return ""
	}
	var underlay []string
	if c.Underlay > 0 {
		underlay = append(underlay, fmt.Sprintf("rate: %v", c.Underlay))
	}
	if c.Delay > 0 {
		underlay = append(underlay, fmt.Sprintf("delay: %v", c.Delay))
	}
	return fmt.Sprintf("hosts: {names: [h1, h2], underlay: {%s}}\n", strings.Join(underlay, ", "))
}

// hostText is the host of a cell's function i, as a field of it.
func hostText(c experiment.Cell, i int) string {
	if c.Hosts == 0 {
		return ""
	}
	return fmt.Sprintf(" host: h%d,", i+1)
}

// ownRate reports whether the cell's discipline at the switch sets its rate itself.
func ownRate(c experiment.Cell) bool { return c.Qdisc == "htb" || c.Qdisc == "hfsc" }

// lineText is the line below a discipline at the switch that sets no rate itself, as
// a field of a port.
func lineText(c experiment.Cell) string {
	if c.At == "" || c.Rate == 0 || ownRate(c) {
		return ""
	}
	return fmt.Sprintf(", qos: {qdisc: tbf, rate: %v, child: {qdisc: pfifo}}", c.Rate)
}

// qos is the cell's queueing discipline, with queue below it, as a field of a link
// or port.
func qos(c experiment.Cell, queue string) string {
	if c.Qdisc == "" {
		return ""
	}
	text := ", qos: {qdisc: " + c.Qdisc
	if c.Rate > 0 && lineText(c) == "" {
		text += fmt.Sprintf(", rate: %v", c.Rate)
	}
	if c.At != "" {
		text += fmt.Sprintf(", at: %s", c.At)
	}
	if queue != "" {
		text += fmt.Sprintf(", child: {qdisc: %s}", queue)
	}
	return text + "}"
}

// Approximate durations of parts of a cell, without its trial, when idle.
const (
	overhead   = 1500 * time.Millisecond
	vmExtra    = 12 * time.Second
	dockerWait = 1500 * time.Millisecond // of each Docker container, with its pause container
	ealExtra   = 10 * time.Second        // of EAL, loading drivers in a virtual machine
	pingExtra  = 2400 * time.Millisecond // sockperf's sleep
	pollsExtra = 4 * time.Second         // of switches and DPDK applications
	bulkExtra  = 6 * time.Second         // that a bulk stream outlasts the trial
)

func expect(c experiment.Cell, trial time.Duration) time.Duration {
	if p, ok := probes[c.Tool]; ok {
		return runner.Watched + p.takes(c, trial) + dockerExtra(c)
	}
	d := bringUp(c) + overhead/3 + lasts(c, trial)
	if c.Tool == experiment.ToolPingPong {
		d += pingExtra
	}
	if c.Bulk {
		d += bulkExtra
	}
	if c.Tool == experiment.ToolStart {
		d -= trial
	}
	return d
}

// bringUp is the part of it in which the cell's chain comes up and is taken down.
func bringUp(c experiment.Cell) time.Duration {
	d := overhead*2/3 + dockerExtra(c)
	if c.Runtime == chain.RuntimeVM {
		d += vmExtra
		if c.Face == chain.FaceDPDK {
			d += ealExtra
		}
	}
	if c.Face == chain.FaceDPDK || strings.HasPrefix(c.Transport, "ovs") {
		d += pollsExtra
	}
	return d
}

// here are the cells of a run that are measured on this host itself.
func here(run *report.ExperimentsRun) []experiment.Cell {
	return slices.DeleteFunc(Cells(run.Experiments), func(c experiment.Cell) bool {
		return run.Skipped[c.String()] != "" || run.Lab[c.String()] != ""
	})
}

// expectIn is a cell's expected duration in a run.
func expectIn(run *report.ExperimentsRun, c experiment.Cell) time.Duration {
	return slower(run, expect(c, run.Trial))
}

// Estimate is roughly how long a complete run takes.
func Estimate(run *report.ExperimentsRun) time.Duration {
	all := (&Runner{Run: run}).loop().Estimate() + labEstimate(run) + buildEstimate(run)
	if run.AtMost > 0 {
		return min(all, max(0, run.AtMost-run.Took))
	}
	return all
}
