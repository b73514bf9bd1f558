// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/test/testenv"
)

// For each configuration in turn:
//
//	a.p0 ---veth--- b.p1        a.p0 ===shm=== b.p1
const twoCells = `apiVersion: drayage/v1
kind: Bench
name: two
transports: [veth, shm]
faces: [netdev, native]
runtimes: [process]
sizes: [128]
loads: [max, 2kpps]
repetitions: %d
trial: 100ms
seed: 3
`

// benchRecords are the records of a directory so far.
func benchRecords(t *testing.T, dir string) []record.Trial {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, report.RecordsFile))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	trials, _, err := record.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return trials
}

// trialIDs are the ids of records of trials that did not fail, each exactly once.
func trialIDs(t *testing.T, trials []record.Trial) []string {
	t.Helper()
	var ids []string
	for _, trial := range trials {
		testenv.Measured(t, trial.ID, trial.Error)
		ids = append(ids, trial.ID)
	}
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) {
		t.Errorf("only %[2]d of %[1]d records are distinct: %[3]v", len(ids), n, ids)
	}
	return ids
}

func TestBenchOfTwoCells(t *testing.T) {
	b := newBench(t)
	file := b.file(strings.Replace(fmt.Sprintf(twoCells, 2), "faces: [netdev, native]\n", "", 1))
	if r := b.want(0, "bench", file, "--dry-run"); !strings.Contains(r.Stdout, "to be measured") {
		t.Errorf("dry run: %s", r)
	}
	dir := filepath.Join(t.TempDir(), "out")
	type result struct {
		Rounds   int
		Baseline string
		Lines    []report.BenchLine
	}
	got := decode[result](t, b.want(0, "bench", file, "--out", dir, "--json"))
	if got.Rounds != 2 || got.Baseline != "veth" {
		t.Errorf("%d rounds, baseline %q", got.Rounds, got.Baseline)
	}
	measured := 0
	for _, l := range got.Lines {
		if l.Skipped != "" || l.Config.Face == "dpdk" { // another test's
			continue
		}
		measured++
		switch {
		case l.Rate == nil || l.Rate.Mean <= 0 || l.Rate.Low == nil:
			t.Errorf("%s has no rate with an interval: %+v (%s)", l.Config, l.Rate, l.Error)
		case l.Limit == nil || l.Limit.Ratio <= 0:
			t.Errorf("%s has no ratio to the limit", l.Config)
		case l.Cost == nil || l.Cost.Cores.Mean <= 0 || l.Cost.Cycles == nil || l.Ceiling <= 0:
			t.Errorf("%s: cost %+v, ceiling %v", l.Config, l.Cost, l.Ceiling)
		case l.LatencyLoad != "2kpps" || l.Samples < 100:
			t.Errorf("%s: %d samples of latency at %s", l.Config, l.Samples, l.LatencyLoad)
		case l.Config.Transport != "veth" && l.Base == nil:
			t.Errorf("%s is not compared with veth", l.Config)
		}
	}
	if measured != 2 {
		t.Errorf("%d rows", measured)
	}
	if r := b.want(0, "report", dir); !strings.Contains(r.Stdout, "OF VETH") {
		t.Errorf("report: %s", r)
	}
	page, err := os.ReadFile(filepath.Join(dir, report.PageFile))
	if err != nil || !bytes.Contains(page, []byte("One-way latency")) {
		t.Errorf("page of %d bytes, error %v", len(page), err)
	}
}

// A killed run resumes where it stopped, in its original order.
func TestBenchResumesAfterKill(t *testing.T) {
	b := newBench(t)
	dir := filepath.Join(t.TempDir(), "out")
	file := b.file(fmt.Sprintf(twoCells, 2))
	b.killBench(file, dir, 3)
	before := benchRecords(t, dir)
	if page := filepath.Join(dir, report.PageFile); fileExists(page) {
		t.Errorf("%s exists although the run was killed", page)
	}
	b.want(0, "bench", "--resume", dir, "--quiet")
	after := benchRecords(t, dir)
	for i, trial := range before {
		if after[i].ID != trial.ID || !after[i].Start.Equal(trial.Start) {
			t.Errorf("record %d was %s and is %s", i, trial.ID, after[i].ID)
		}
	}
	// Three rows at two loads and the generator alone, in two rounds.
	if ids := trialIDs(t, after); len(ids) != 2*(3*2+1) {
		t.Errorf("%d records: %v", len(ids), ids)
	}
	if r := b.want(1, "bench", "--resume", dir); !strings.Contains(r.Err, "finished") {
		t.Errorf("resumed a second time: %s", r)
	}
}

// TestBenchThroughAVNF: one thread sends and receives, with a function between. Fewer
// packets are in flight than the rings hold, so none is lost unless the function gets no
// CPU until the generator has stopped waiting:
//
//	a.p0 ===shm=== vnf.q0   vnf.q1 ===shm=== a.p1
//
//	a.p0 ===shm=== vnf.q0   vnf.q1 ===shm=== w1, vnf.q2 ===shm=== w2: a load balancer
func TestBenchThroughAVNF(t *testing.T) {
	b := newBench(t)
	testenv.Built(t, "draygen-dpdk")
	testenv.Built(t, "dray-vnf")
	b.env = append(b.env, "DRAY_LIB="+filepath.Dir(testenv.Built(t, "librte_net_dray.so")))
	file := b.file(`apiVersion: drayage/v1
kind: Bench
name: vnf
transports: [shm]
faces: [dpdk]
runtimes: [process]
sizes: [108]
loads: [1kpps]
vnfs: [l2fwd, bng, gtpu, lb-2]
repetitions: 1
trial: 250ms
`)
	var out string
	for attempt := range 4 {
		out = filepath.Join(t.TempDir(), "out")
		got := decode[struct{ Lines []report.BenchLine }](t, b.want(0, "bench", file, "--out", out, "--json"))
		if len(got.Lines) != 4 {
			t.Fatalf("%d lines", len(got.Lines))
		}
		late := lateLines(got.Lines)
		if len(late) == 0 {
			break
		}
		if attempt == 3 {
			t.Errorf("lost or silent in each of four runs, in the last: %v", late)
		}
	}
	// Without FCS 104 bytes are sent. The gateway replaces 8 by 32; the UPF removes 44.
	left := map[string]uint64{"bng": 128, "gtpu": 60}
	for _, r := range benchRecords(t, out) {
		bytes := left[r.Bench.Config.VNF]
		if bytes == 0 {
			continue
		}
		delete(left, r.Bench.Config.VNF)
		if whole := fmt.Sprintf(`"received_bytes":%d,`, bytes*r.Delivery.Received); r.Delivery.Foreign != 0 || !strings.Contains(r.Raw, whole) {
			t.Errorf("%s: %d foreign, and not %s: %s", r.Bench.Config, r.Delivery.Foreign, whole, r.Raw)
		}
	}
	if len(left) != 0 {
		t.Errorf("no records for %v", left)
	}
}

// lateLines returns the lines without a figure or with a lost packet. On a busy machine the
// kernel may let a function wait for longer than a trial lasts. With lb-2 four functions
// share the CPUs, so it may always lose some.
func lateLines(lines []report.BenchLine) (late []string) {
	for _, l := range lines {
		silent := l.Rate == nil || l.Lost.Sent == 0
		if silent || l.Config.VNF != "lb-2" && (l.Rate.Mean <= 0 || l.Lost.Lost != 0) {
			late = append(late, fmt.Sprintf("%s: rate %+v, lost %+v, %s%s", l.Config, l.Rate, l.Lost, l.Error, l.Skipped))
		}
	}
	return late
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// killBench starts a bench and kills dray itself once it has made some records.
func (b *bench) killBench(file, dir string, records int) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := b.command(ctx, "bench", file, "--out", dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	for len(benchRecords(b.t, dir)) < records {
		if ctx.Err() != nil {
			b.t.Fatalf("%d records after two minutes: %s", len(benchRecords(b.t, dir)), stderr.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		b.t.Fatal(err)
	}
}

// An interrupted bench takes its configuration down, and can be resumed.
func TestBenchInterrupted(t *testing.T) {
	b := newBench(t)
	dir := filepath.Join(t.TempDir(), "out")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := b.command(ctx, "bench", b.file(fmt.Sprintf(twoCells, 50)), "--out", dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for len(benchRecords(t, dir)) < 2 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(stderr.String(), "--resume "+dir) {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
	// The test's clean-up finds anything left up.
	trialIDs(t, benchRecords(t, dir))
}

func TestBenchNamesThePlaceOfAFault(t *testing.T) {
	b := &bench{t: t, state: t.TempDir()}
	file := b.file("apiVersion: drayage/v1\nkind: Bench\nname: x\ntransports: [vet]\n")
	if r := b.want(1, "bench", file); !strings.Contains(r.Err, ":4:14: ") || !strings.Contains(r.Err, `did you mean "veth"?`) {
		t.Errorf("%s", r)
	}
	if r := b.want(2, "bench"); !strings.Contains(r.Err, "quick") {
		t.Errorf("%s", r)
	}
}
