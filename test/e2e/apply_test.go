// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// appliedChain is [ a ]──ab──[ b ] with traffic, and [ c ]──cd──[ d ] to change.
const appliedChain = `apiVersion: drayage/v1
kind: Chain
name: applied
functions:
  - {name: a, runtime: process, command: [sh, -c, "echo begun; exec ping -q -i 0.002 10.9.0.2"], ports: [{name: p0, ip: 10.9.0.1/24}]}
  - {name: b, runtime: process, command: [sleep, "1000"], ports: [{name: p0, ip: 10.9.0.2/24}]}
  - name: c
    runtime: process
    command: [sleep, "1000"]
    ports:
      - {name: p0}
  - {name: d, runtime: process, command: [sleep, "1000"], ports: [{name: p0}]}
links:
  - name: ab
    ends: [a.p0, b.p0]
    requires: {latency: 5ms}
  - {name: cd, ends: [c.p0, d.p0]}
`

// edited is the chain with parts of its file replaced.
func edited(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the chain has no %q", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

// change is one difference reported by `dray apply`.
type change struct{ What, Name, Action, Refused string }

func changesOf(t *testing.T, r result) string {
	t.Helper()
	var list []string
	for _, c := range decode[struct{ Changes []change }](t, r).Changes {
		list = append(list, strings.TrimSpace(c.Action+" "+c.What+" "+c.Name))
	}
	return strings.Join(list, ", ")
}

// A changed file affects only what it changes: the traffic on an unchanged link loses
// no packet.
func TestApply(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := b.file(appliedChain)
	b.want(0, "up", file)
	defer func() { b.want(0, "down", "applied") }()
	apply := func(text, want string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := changesOf(t, b.want(0, "apply", file, "--dry-run", "--json")); got != want {
			t.Errorf("the difference is %q, want %q", got, want)
		}
		if got := changesOf(t, b.want(0, "apply", file, "--json")); got != want {
			t.Errorf("applied: %q, want %q", got, want)
		}
		if r := b.want(0, "apply", file); !strings.Contains(r.Stdout, "nothing to change") {
			t.Errorf("applied again: %s", r)
		}
	}
	pids := func() map[string]int {
		all := map[string]int{}
		for _, f := range []string{"a", "b", "c"} {
			all[f] = functionPID(t, b, "applied", f)
		}
		return all
	}
	before := pids()
	apply(appliedChain, "")

	restarted := edited(t, appliedChain, `command: [sleep, "1000"]`+"\n", `command: [sleep, "2000"]`+"\n", "latency: 5ms", "latency: 9ms")
	if err := os.WriteFile(file, []byte(restarted), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := b.want(1, "up", file); !strings.Contains(r.Err, "dray apply "+file) {
		t.Errorf("up with a changed file does not mention apply: %s", r)
	}
	apply(restarted, "restart function c, update link ab")
	after := pids()
	if after["a"] != before["a"] || after["b"] != before["b"] || after["c"] == before["c"] || after["c"] == 0 {
		t.Errorf("processes %v, now %v", before, after)
	}

	grown := edited(t, restarted, "      - {name: p0}\n", "      - {name: p0}\n      - {name: p1}\n",
		"links:\n", "  - {name: e, runtime: process, command: [sleep, \"1000\"], ports: [{name: p0}]}\nlinks:\n  - {name: ce, ends: [c.p1, e.p0]}\n")
	apply(grown, "update function c, add function e, add link ce")
	if out := b.want(0, "exec", "applied", "e", "--", "ip", "-br", "link", "show", "p0"); !strings.Contains(out.Stdout, "UP") {
		t.Errorf("the new function's port: %s", out)
	}
	if got := functionPID(t, b, "applied", "e"); got == 0 {
		t.Error("the new function does not run")
	}

	apply(edited(t, grown, "ends: [c.p0, d.p0]", "ends: [c.p0, d.p0], transport: bridge"), "replace link cd")
	apply(appliedChain, "remove function e, restart function c, remove link ce, update link ab, replace link cd")
	if r := b.dray("exec", "applied", "c", "--", "ip", "link", "show", "p1"); r.Code == 0 {
		t.Errorf("the removed link's port is still there: %s", r)
	}
	if got := pids(); got["a"] != before["a"] || got["b"] != before["b"] {
		t.Errorf("processes %v, at last %v", before, got)
	}
	b.wantNoLoss(t, before["a"])
}

// inFlight packets may be under way when ping ends; a link that is made again loses more of 500 each second.
const inFlight = 10

// wantNoLoss ends function a's traffic, and checks that nothing was lost.
func (b *bench) wantNoLoss(t *testing.T, ping int) {
	t.Helper()
	if err := syscall.Kill(ping, syscall.SIGINT); err != nil { // it prints its figures
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		log := b.want(0, "logs", "applied", "a").Stdout
		if i := strings.Index(log, "--- 10.9.0.2"); i >= 0 && strings.Contains(log, "packet loss") {
			var sent, received int
			_, figures, _ := strings.Cut(log[i:], "\n")
			_, err := fmt.Sscanf(figures, "%d packets transmitted, %d received", &sent, &received)
			if err != nil || received < 100 || sent-received > inFlight || strings.Count(log, "begun") != 1 {
				t.Errorf("the unchanged link lost packets: %v\n%s", err, log)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the traffic does not end:\n%s", log)
		}
	}
}

// Changes that need the chain down are refused before any is made.
func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := b.file(appliedChain)
	b.want(1, "apply", file) // it is not up
	b.want(0, "up", file)
	defer func() { b.want(0, "down", "applied") }()
	pid := functionPID(t, b, "applied", "b")
	changed := edited(t, appliedChain, "  - name: c\n", "  - name: c\n    memory: 64Mi\n", `command: [sleep, "1000"], ports: [{name: p0, ip`, `command: [sleep, "3000"], ports: [{name: p0, ip`)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	r := b.want(1, "apply", file)
	for _, want := range []string{"function c: memory cannot change", "nothing was touched", "dray down applied", "dray up"} {
		if !strings.Contains(r.Err, want) {
			t.Errorf("the output lacks %q: %s", want, r)
		}
	}
	if got := functionPID(t, b, "applied", "b"); got != pid {
		t.Errorf("function b was process %d, and is %d", pid, got)
	}
	if r := b.want(0, "apply", file, "--dry-run"); !strings.Contains(r.Stdout, "refused") {
		t.Errorf("the dry run does not report it: %s", r)
	}
	impossible := edited(t, appliedChain, "latency: 5ms", "latency: 1ns")
	if err := os.WriteFile(file, []byte(impossible), 0o600); err != nil {
		t.Fatal(err)
	}
	b.want(3, "apply", file)
	if got := changesOf(t, b.want(0, "apply", file, "--warn", "--dry-run", "--json")); got != "update link ab" {
		t.Errorf("with --warn: %q", got)
	}
}

// A link between native ports changes its transport under the applications.
func TestApplyMovesANativeLink(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := pair{Name: "moved", Face: "native", Transport: "shm", Command: "[sleep, '1000']"}
	file := b.file(p.yaml())
	b.want(0, "up", file)
	defer func() { b.want(0, "down", "moved") }()
	pid := functionPID(t, b, "moved", "a")
	p.Transport = "veth"
	if err := os.WriteFile(file, []byte(p.yaml()), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := changesOf(t, b.want(0, "apply", file, "--json")), "move link ab"; got != want {
		t.Errorf("applied: %q, want %q", got, want)
	}
	if r := b.want(0, "status", "moved"); !strings.Contains(r.Stdout, "veth") || functionPID(t, b, "moved", "a") != pid {
		t.Errorf("function a was process %d: %s", pid, r)
	}
	p.Transport = "shm"
	replaced := strings.Replace(p.yaml(), "face: native}]", "face: native, queues: 2}]", 2)
	if err := os.WriteFile(file, []byte(replaced), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := b.want(1, "apply", file); !strings.Contains(r.Err, "native port p0") {
		t.Errorf("%s", r)
	}
}
