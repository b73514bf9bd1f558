// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// computeChain is two functions that spin on one CPU, and no link.
const computeChain = `apiVersion: drayage/v1
kind: Chain
name: shares
functions:
  - {name: big, runtime: process, cpus: "CPU", compute: {share: 60%, deadline: 250ms}, command: [sh, -c, "while :; do :; done"]}
  - {name: small, runtime: RUNTIME, cpus: "CPU", compute: {share: 30%, deadline: 250ms}, command: [sh, -c, "while :; do :; done"]}
`

// computeText is the chain on this machine's last CPU.
func (b *bench) computeText(runtime string) string {
	cpus := decode[struct{ Host struct{ CPUs []int } }](b.t, b.want(0, "doctor", "--json")).Host.CPUs
	text := strings.ReplaceAll(computeChain, `"CPU"`, fmt.Sprintf("%q", strconv.Itoa(cpus[len(cpus)-1])))
	return edited(b.t, text, "RUNTIME", runtime)
}

// Functions that share a CPU get their shares while both are busy. A busy machine may make one wait for too long, but
// both are judged.
func TestComputeIsGrantedAndJudged(t *testing.T) {
	b := newBench(t)
	text := b.computeText("process")
	r := b.want(3, "plan", b.file(edited(t, text, "share: 30%", "share: 50%")))
	if !strings.Contains(r.Err, "lower a share on CPU") {
		t.Errorf("%s", r)
	}
	r = b.dray("run", b.file(text), "--profile", "quick", "--json", "--out", filepath.Join(t.TempDir(), "out"))
	got := decode[verdicts](t, r)
	if len(got.Verdicts) != 4 {
		t.Fatalf("%s", r)
	}
	for i, want := range []struct {
		link, requirement string
		low, high         float64
	}{{"big", "share", 60, 70}, {"big", "deadline", 0, 0}, {"small", "share", 30, 40}, {"small", "deadline", 0, 0}} {
		v := got.Verdicts[i]
		if v.Link != want.link || v.Requirement != want.requirement || v.Verdict == "not measurable" {
			t.Errorf("%+v", v)
		}
		if want.high == 0 {
			continue
		}
		share, err := strconv.ParseFloat(strings.TrimSuffix(v.Measured.Text, "%"), 64)
		if err != nil || share < want.low || share > want.high || v.Verdict != "met" {
			t.Errorf("%+v", v)
		}
	}
}

// cpuTicks is the CPU time of a process in clock ticks (proc(5)).
func cpuTicks(t *testing.T, pid int) float64 {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	sum := 0.0
	for _, field := range fields[11:13] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// The commands of a chain that is up share the CPU, whatever their runtimes are, and `dray status` shows the weights.
func TestComputeOfRunningCommands(t *testing.T) {
	b := newBench(t)
	b.want(0, "up", b.file(b.computeText("runc")))
	type function struct {
		Name    string
		Process struct{ PID int }
	}
	type grant struct{ Weight, Largest int }
	status := decode[struct {
		Chains []struct {
			Functions []function
			Grants    map[string]grant
		}
	}](t, b.want(0, "status", "shares", "--json")).Chains[0]
	big, small := status.Grants["big"], status.Grants["small"]
	if big.Largest == 0 || big.Weight != 2*small.Weight && big.Weight != 2*small.Weight+1 && big.Weight != 2*small.Weight-1 {
		t.Errorf("%+v", status.Grants)
	}
	if text := b.want(0, "status", "shares").Stdout; !strings.Contains(text, "60% of CPU") || !strings.Contains(text, fmt.Sprintf("weight %d of %d", big.Weight, big.Largest)) {
		t.Errorf("%s", text)
	}
	before, spent := map[string]float64{}, map[string]float64{}
	for _, f := range status.Functions {
		before[f.Name] = cpuTicks(t, f.Process.PID)
	}
	const enough = 150 // ticks, of which a busy machine gives fewer in a second
	for end := time.Now().Add(patience); spent["big"]+spent["small"] < enough && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for _, f := range status.Functions {
			spent[f.Name] = cpuTicks(t, f.Process.PID) - before[f.Name]
		}
	}
	if ratio := spent["big"] / spent["small"]; ratio < 1.7 || ratio > 2.3 {
		t.Errorf("ticks %v: big has %.2f times as much as small", spent, ratio)
	}
	b.want(0, "down", "shares")
}
