// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/measure/live"
)

// nodesOf are the answers about the nodes; those in first go before them.
func nodesOf(first ...answer) []answer {
	return append(first,
		answer{contains: "/namespaces/dray-system/pods/dray-node-jrpkn:9464/proxy/links", file: "links-n1.json"},
		answer{contains: "/namespaces/dray-system/pods/dray-node-5wqzq:9464/proxy/links", file: "links-n2.json"},
		answer{contains: "--namespace=dray-system --selector=app.kubernetes.io/name=dray-node -- pods", file: "pods.json"},
		answer{contains: "--all-namespaces", file: "all-chains.json"},
		answer{contains: "-- chains", file: "chain.json"})
}

func TestClusterTop(t *testing.T) {
	fakeKubectl(t, nodesOf()...)
	out, errs, code := kubectlDray("top -A --samples 1")
	holds(t, "top", out, "every 2s\n", "DIRECTION", "ran/f1/f1u: shm active", "f1-split/f1/f1u: shm active", "cu-up.f1u → du.f1u", "kpps", "missed", "≤ 200ns at p99")
	if code != exitOK || errs != "" {
		t.Errorf("exit code %d: %s", code, errs)
	}
	out, _, _ = kubectlDray("top f1 --samples 1")
	if holds(t, "top f1", out, "f1-split/f1/f1u"); strings.Contains(out, "ran/") {
		t.Errorf("a chain of another namespace is shown:\n%s", out)
	}
}

func TestClusterTopAsDocuments(t *testing.T) {
	fakeKubectl(t, nodesOf()...)
	out, errs, code := kubectlDray("top -A --samples 2 --interval 1s --json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != exitOK || errs != "" || len(lines) != 2 {
		t.Fatalf("exit code %d, %d lines: %s", code, len(lines), errs)
	}
	for _, line := range lines {
		var got struct {
			Schema string
			live.Sample
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil || got.Schema != schemaSample || len(got.Links) != 2 || len(got.Links[0].Now) != 2 {
			t.Errorf("%v: %s", err, line)
		}
	}
}

// TestNodesThatDoNotAnswer: the figures of the others are shown all the same.
func TestNodesThatDoNotAnswer(t *testing.T) {
	fakeKubectl(t, nodesOf(answer{contains: "dray-node-5wqzq:9464", fails: "forbidden-proxy.txt"})...)
	out, errs, code := kubectlDray("top -A --samples 1")
	holds(t, "top", out, "ran/f1/f1u: shm active")
	holds(t, "standard error", errs, "dray: warning: node n2: the cluster refuses it: Error from server (Forbidden): pods \"dray-node-5wqzq:9464\" is forbidden")
	if code != exitOK || strings.Contains(out, "f1-split") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if _, errs, code := kubectlDray("top f1 --samples 1"); code != exitError || !strings.Contains(errs, "dray: node n2: the cluster refuses it") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	fakeKubectl(t, nodesOf(answer{contains: "-- pods", script: `echo '{"items":[]}'`})...)
	if _, errs, code := kubectlDray("top f1 --samples 1"); code != exitError || errs != "dray: no pod of dray-node is ready on node n2\n" {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestTopOfAWaitingChain(t *testing.T) {
	calls := fakeKubectl(t, answer{contains: "-- chains", script: "sed 's/\"node\"/\"other\"/' " + filepath.Join(recorded, "chain.json")})
	out, _, code := kubectlDray("top f1 --samples 1")
	if holds(t, "top", out, "no link has reported yet; `kubectl dray status` says"); code != exitOK || strings.Contains(calls(), "pods") {
		t.Errorf("exit code %d, calls %s", code, calls())
	}
}

func TestClusterTopUsage(t *testing.T) {
	fakeKubectl(t)
	for line, want := range map[string]string{
		"top --samples 0": "--samples 0 shows nothing", "top --interval 1ms": "--interval 1ms is shorter than dray-node's own",
		"verify": "an argument is missing", "verify f1 --timeout -1s": "--timeout -1s is negative",
	} {
		if _, errs, code := kubectlDray(line); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d: %s", line, code, errs)
		}
	}
}

// TestStatusWatchEndsWithoutError: Ctrl-C is how it ends.
func TestStatusWatchEndsWithoutError(t *testing.T) {
	fakeKubectl(t, answer{contains: "get", file: "chains.json"})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var errs bytes.Buffer
	out := countdown{text: "chain f1-split/f1  ready", times: 2, over: cancel}
	if err := runKubectl(ctx, []string{"status", "--watch"}, &out, &errs); err != nil {
		t.Errorf("%v: %s", err, errs.String())
	}
	if n := strings.Count(out.String(), out.text); n != 2 {
		t.Errorf("shown %d times, not twice:\n%s", n, out.String())
	}
}

// countdown is output that is over once it holds a text so many times.
type countdown struct {
	bytes.Buffer
	text  string
	times int
	over  func()
}

func (c *countdown) Write(b []byte) (int, error) {
	n, err := c.Buffer.Write(b)
	if strings.Count(c.String(), c.text) >= c.times {
		c.over()
	}
	return n, err
}

func TestVerifyReturnsAtOnceWhatIsDecided(t *testing.T) {
	for _, c := range []struct {
		change string
		code   int
		want   string
	}{
		{"", exitOK, "met"},
		{"102s/True/False/", exitMissed, "missed"}, // the latency
		{`s/"reason": "Planned"/"reason": "Infeasible"/`, exitInfeasible, "infeasible"},
		// Traffic may never show it, so nothing is waited for.
		{"102s/True/Unknown/; 103s/latency/min_bitrate/", exitNotMeasurable, "min_bitrate"},
	} {
		fakeKubectl(t, answer{contains: " f1 ", script: "sed '" + c.change + "' " + filepath.Join(recorded, "chain.json")})
		begin := time.Now()
		out, errs, code := kubectlDray("verify f1 --timeout 1m")
		if holds(t, c.want, out, c.want); code != c.code || errs != "" || time.Since(begin) > 30*time.Second {
			t.Errorf("%s: exit code %d after %v, %s\n%s", c.want, code, time.Since(begin), errs, out)
		}
	}
}

// TestVerifyWaits: the first answer is undecided.
func TestVerifyWaits(t *testing.T) {
	chain := filepath.Join(recorded, "chain.json")
	seen := t.TempDir() + "/seen"
	fakeKubectl(t, answer{contains: " f1 ", script: "if [ -e " + seen + " ]; then cat " + chain + "; else touch " + seen + "; sed '102s/True/Unknown/' " + chain + "; fi"})
	out, errs, code := kubectlDray("verify f1")
	holds(t, "standard error", errs, "Waiting: 1 of 2 requirements decided; link f1u, latency: cu-up.f1u: ")
	if holds(t, "verify", out, "met"); code != exitOK {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// TestVerifyOfANewChain: the operator has not seen it at the first look, or not at two.
func TestVerifyOfANewChain(t *testing.T) {
	chain := filepath.Join(recorded, "chain.json")
	for looks, says := range map[int]bool{1: false, 2: true} {
		seen := t.TempDir() + "/seen"
		fakeKubectl(t, answer{contains: " f1 ", script: fmt.Sprintf(`echo >>%s; if [ $(wc -l <%[1]s) -gt %d ]; then cat %s; else sed 's/"status": {/"other": {/' %[3]s; fi`, seen, looks, chain)})
		out, errs, code := kubectlDray("verify f1")
		if holds(t, "verify", out, "met"); code != exitOK || strings.Contains(errs, "Waiting: dray-operator has not seen this chain") != says {
			t.Errorf("%d looks: exit code %d: %s", looks, code, errs)
		}
	}
}

func TestVerifyStopsWaiting(t *testing.T) {
	fakeKubectl(t, answer{contains: " f1 ", script: `sed '/every link has its pods/,/Ready"$/{s/every link has its pods/link f1u: no pod has du.f1u/;s/True/False/}' ` + filepath.Join(recorded, "chain.json")})
	out, errs, code := kubectlDray("verify f1 --timeout 0")
	holds(t, "standard error", errs, "Undecided after 0s: link f1u: no pod has du.f1u")
	if holds(t, "verify", out, "waiting"); code != exitNotMeasurable {
		t.Errorf("exit code %d", code)
	}
}

// Both nodes of a link tell of it, and it is shown once.
func TestALinkOfTwoNodesIsShownOnce(t *testing.T) {
	told := func(state string, late bool) live.Link {
		return live.Link{Chain: "ran/f1", Status: broker.LinkStatus{Name: "f1u", State: state, Late: late}}
	}
	works, waits, old := told(broker.StateActive, false), told(broker.StateHalf, false), told(broker.StateActive, true)
	for _, pair := range [][2]live.Link{{works, waits}, {waits, works}, {works, old}, {old, works}} {
		if got := withLink(withLink(nil, pair[0]), pair[1]); len(got) != 1 || got[0].Status.State != works.Status.State || got[0].Status.Late {
			t.Errorf("%+v", got)
		}
	}
	for i, l := range []*live.Link{&works, &waits} {
		l.Status.Ends = []broker.EndStatus{{Function: fmt.Sprint(i), Classes: &broker.ClassesStatus{}}}
	}
	for _, pair := range [][2]live.Link{{works, waits}, {waits, works}} {
		if got := withLink(withLink(nil, pair[0]), pair[1]); len(got[0].Status.Ends) != 2 {
			t.Errorf("the classes of one end: %+v", got)
		}
	}
	other := works
	other.Status.Name = "f1c"
	if got := withLink([]live.Link{works}, other); len(got) != 2 {
		t.Errorf("%+v", got)
	}
}
