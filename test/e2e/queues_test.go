// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/test/testenv"
)

// offered is a chain of links on which one function offers more than its port lets pass:
//
//	NAME-tx  offers two DSCPs  ── NAME ──  NAME-rx  takes all
//
// Every packet has 500 bytes; the lower class is overloaded in any case.
type offered struct {
	name, transport string
	urgent, rest    int    // bit/s that are offered of DSCP 46, and of DSCP 0
	qos             string // YAML mapping
	requires        string // YAML mapping
}

func offering(chain, program string, links ...offered) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: drayage/v1\nkind: Chain\nname: %s\nfunctions:\n", chain)
	for _, l := range links {
		fmt.Fprintf(&b, "  - {name: %s-tx, runtime: process, command: [%s, p, \"500\", \"46:%d\", \"0:%d\"], ports: [{name: p, face: native}]}\n",
			l.name, program, l.urgent, l.rest)
		fmt.Fprintf(&b, "  - {name: %s-rx, runtime: process, command: [%s, p], ports: [{name: p, face: native}]}\n", l.name, program)
	}
	b.WriteString("links:\n")
	for _, l := range links {
		fmt.Fprintf(&b, "  - name: %s\n    ends: [%[1]s-tx.p, %[1]s-rx.p]\n    transport: %s\n", l.name, l.transport)
		optional(&b, "qos", l.qos)
		optional(&b, "requires", l.requires)
	}
	return b.String()
}

// offerProgram is an application that offers, or takes, packets.
func offerProgram(t *testing.T) string {
	t.Helper()
	built := testenv.BuiltBy(t, "attackers", "out", "port-plain", "tests", "egress", "offer")
	return filepath.Join(visibleFiles(t, built), "offer")
}

// reported is the status of an end of a link, by its number.
func (b *bench) reported(chain, link string, end int) broker.EndStatus {
	b.t.Helper()
	for _, s := range decodeChains[struct{ Live []live.Link }](b.t, b.want(0, "status", chain, "--json")) {
		for _, l := range s.Live {
			if l.Status.Name == link {
				return l.Status.Ends[end]
			}
		}
	}
	b.t.Fatalf("no link %s in the status of %s", link, chain)
	return broker.EndStatus{}
}

// overloaded waits until the last class of an end's port has dropped packets, and the first
// has sent some.
func (b *bench) overloaded(chain, link string, number int) *broker.ClassesStatus {
	b.t.Helper()
	var last broker.EndStatus
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		last = b.reported(chain, link, number)
		if s := last.Classes; s != nil && s.AsOrdered && s.Classes[0].Sent > 0 && s.Classes[len(s.Classes)-1].Dropped > 200 {
			return s
		}
	}
	b.t.Fatalf("link %s of %s is not overloaded: %+v", link, chain, last.Classes)
	return nil
}

// Ports queue what they send by traffic class.
func TestTrafficClasses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const chain = "classes"
	b.want(0, "up", b.file(offering(chain, offerProgram(t),
		offered{name: "prio", transport: "shm", urgent: 1e6, rest: 16e6,
			qos: "{qdisc: prio, rate: 8Mbps, classes: [{name: urgent, dscp: [46]}, {name: rest, child: {qdisc: pfifo, limit: 50}}]}"},
		offered{name: "htb", transport: "shm", urgent: 16e6, rest: 16e6,
			qos: "{qdisc: htb, rate: 8Mbps, classes: [{name: gold, dscp: [46], rate: 6Mbps}, {name: rest, rate: 2Mbps, ceil: 8Mbps}]}"},
		offered{name: "hfsc", transport: "shm", urgent: 16e6, rest: 16e6,
			qos: "{qdisc: hfsc, rate: 8Mbps, classes: [{name: gold, dscp: [46], rate: 6Mbps}, {name: rest, rate: 2Mbps, child: {qdisc: codel}}]}"},
	)))
	defer b.want(0, "down", chain)
	urgent, rest := classesOf(b.overloaded(chain, "prio", 0))
	if urgent.Name != "urgent" || urgent.Dropped > 0 || rest.Limit != 50 || rest.QueuedMost != 50 || urgent.LongestNS > rest.LongestNS {
		t.Errorf("prio: %+v, %+v", urgent, rest)
	}
	for link, discipline := range map[string]string{"htb": "pfifo", "hfsc": "codel"} {
		s := b.overloaded(chain, link, 0)
		gold, rest := classesOf(s)
		if ratio := float64(gold.Sent) / float64(rest.Sent); s.Scheduler != link || rest.Discipline != discipline || ratio < 2 || ratio > 5 {
			t.Errorf("%s: %s, ratio %.2f of %+v, %+v", link, s.Scheduler, ratio, gold, rest)
		}
	}
}

func classesOf(s *broker.ClassesStatus) (first, last broker.ClassStatus) {
	return s.Classes[0], s.Classes[len(s.Classes)-1]
}

// An application that sends more than max_bitrate is held to it, and dray run sees that
// the limit is kept.
func TestMaxBitrateOnSharedMemory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const chain = "limited"
	l := offered{name: "ab", transport: "shm", urgent: 1e6, rest: 40e6, requires: "{max_bitrate: 8Mbps}"}
	b.want(0, "up", b.file(offering(chain, offerProgram(t), l)))
	if s := b.overloaded(chain, "ab", 0); s.Rate != 8e6 || s.Scheduler != "none" || len(s.Classes) != 1 || s.Classes[0].Name != "all" {
		t.Errorf("the port queues by %+v", s)
	}
	b.limited(chain, "ab", 1, 8e6)
	b.want(0, "down", chain)
	l.qos = "{qdisc: tbf, rate: 4Mbps}" // so that noise does not leave the verdict open
	b.measure(0, "run", b.file(offering(chain, offerProgram(t), l)))
}

// What is sent is limited otherwise while the application keeps sending. A port that was
// opened with a limit keeps one.
func TestAnOpenPortIsLimitedOtherwise(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const chain = "other-limit"
	program := offerProgram(t)
	l := offered{name: "ab", transport: "shm", urgent: 1e6, rest: 40e6, requires: "{max_bitrate: 8Mbps}"}
	file := b.file(offering(chain, program, l))
	b.want(0, "up", file)
	defer b.want(0, "down", chain)
	b.overloaded(chain, "ab", 0)
	pid := functionPID(t, b, chain, "ab-tx")
	apply := func(qos, requires string, status int) result {
		l.qos, l.requires = qos, requires
		testenv.Must(t, os.WriteFile(file, []byte(offering(chain, program, l)), 0o600))
		return b.want(status, "apply", file, "--json")
	}
	r := apply("{qdisc: prio, rate: 2Mbps, classes: [{name: urgent, dscp: [46]}, {name: rest, child: {qdisc: pfifo, limit: 2000}}]}", "", 0)
	if got := changesOf(t, r); got != "move link ab" {
		t.Errorf("applied: %q", got)
	}
	if s := b.overloaded(chain, "ab", 0); s.Rate != 2e6 || s.Scheduler != "prio" || len(s.Classes) != 2 || s.Classes[1].Limit != 2000 {
		t.Errorf("the port queues by %+v", s)
	}
	b.limited(chain, "ab", 1, 2e6)
	if got := functionPID(t, b, chain, "ab-tx"); got != pid {
		t.Errorf("the application was process %d, and is %d", pid, got)
	}
	if r := apply("", "", 1); !strings.Contains(r.String(), "native port p") {
		t.Errorf("without a limit: %s", r)
	}
}

// limited checks that an end of a link receives at most a rate, in bit/s, until it has received
// what passes in 1.5 s at that rate: a machine that is busy may be slow, but the port never sends
// more.
func (b *bench) limited(chain, link string, end int, rate float64) {
	b.t.Helper()
	received := func() float64 { return float64(b.reported(chain, link, end).Counters.RxBytes) * 8 }
	// A report may be old, so count from one that came after this time.
	var began time.Time
	asked := time.Now()
	old := received()
	first := old
	for deadline := asked.Add(patience); first == old && asked.Before(deadline); first = received() {
		began, asked = asked, time.Now()
	}
	var got, took float64
	for deadline := time.Now().Add(patience); (got < 1.5*rate || took < 1.5) && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		got = received() - first
		took = time.Since(began).Seconds()
	}
	if got < 1.5*rate || got/took > 1.5*rate {
		b.t.Errorf("link %s of %s passes %.1f Mbit in %.1f s, instead of %.1f Mbit/s", link, chain, got/1e6, took, rate/1e6)
	}
}

// A switch limits what a function receives; its own ports queue.
func TestClassesAtTheSwitch(t *testing.T) {
	t.Parallel()
	needSwitch(t, "ovs-dray")
	b := newDPDKBench(t)
	const chain = "at-switch"
	b.want(0, "up", b.file(offering(chain, offerProgram(t),
		offered{name: "n3", transport: "ovs-dray", urgent: 1e6, rest: 40e6, qos: "{qdisc: htb, rate: 8Mbps, at: switch}"})))
	defer b.want(0, "down", chain)
	const half = "n3.2" // of the link: from the switch, its end 1, to the receiver
	if s := b.overloaded(chain, half, 1); s.Rate != 8e6 {
		t.Errorf("the switch's port queues by %+v", s)
	}
	b.limited(chain, half, 0, 8e6)
}

// An unmodified DPDK application sends as its chain orders.
func TestClassesOfADPDKPort(t *testing.T) {
	t.Parallel()
	b := newDPDKBench(t)
	const chain = "pmd-classes"
	b.want(0, "up", b.file(testpmds(chain, "shm, qos: {qdisc: prio, rate: 50Mbps, classes: [{name: urgent, dscp: [46]}, {name: rest}]}", "runtime: runc")))
	defer b.want(0, "down", chain)
	b.receives(chain)
	s := b.reported(chain, "n3", 0).Classes
	if s == nil || !s.AsOrdered || s.Classes[0].Sent > 0 || s.Classes[1].Sent == 0 || s.Classes[1].Dropped == 0 {
		t.Errorf("the sender's port queues by %+v", s)
	}
}
