// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// inVeth calls f with a throw-away namespace that holds the veth pair p0, p1.
func inVeth(t *testing.T, f func(n Netns)) {
	t.Helper()
	testenv.Root(t)
	err := InThrowawayNetns(func(n Netns) error {
		if err := CreateVeth(Iface{Netns: n, Name: "p0", MTU: 1500}, Iface{Netns: n, Name: "p1", MTU: 1500}); err != nil {
			return err
		}
		for _, name := range []string{"p0", "p1"} {
			if err := n.SetUp(name); err != nil {
				return err
			}
		}
		f(n)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSetQdisc sets each kind and reads its parameters back in tc's syntax. A kind
// that the kernel lacks must say so and change nothing.
func TestSetQdisc(t *testing.T) {
	testenv.Program(t, "tc")
	cases := []struct {
		q    Qdisc
		text string
	}{
		{Qdisc{Kind: "pfifo", Limit: 77}, "limit 77p"},
		{Qdisc{Kind: "bfifo", Limit: 100000}, "limit 100000b"},
		{Qdisc{Kind: "tbf", Rate: 10e6, Burst: 20000, Latency: 30 * time.Millisecond}, "rate 10Mbit burst 20000b lat 30ms"},
		{Qdisc{Kind: "tbf", Rate: 40e9}, "rate 40Gbit"},
		{Qdisc{Kind: "htb", Rate: 10e6, Ceil: 20e6, Burst: 20000}, "rate 10Mbit ceil 20Mbit burst 20000b"},
		{Qdisc{Kind: "hfsc", Rate: 10e6}, "m2 10Mbit"},
		{Qdisc{Kind: "sfq", Limit: 100}, "limit 100p"},
		{Qdisc{Kind: "codel", Limit: 100}, "limit 100p"},
		{Qdisc{Kind: "fq_codel", Limit: 100}, "limit 100p"},
		{Qdisc{Kind: "codel", Target: time.Millisecond, Interval: 20 * time.Millisecond, ECN: &[]bool{true}[0]}, "ecn"},
		{Qdisc{Kind: "fq_codel", Target: 2 * time.Millisecond, ECN: new(bool)}, "target 2ms interval 100ms"},
		{Qdisc{Kind: "netem", Latency: 3 * time.Millisecond, Limit: 100}, "delay 3ms"},
	}
	for _, c := range cases {
		t.Run(c.q.Kind, func(t *testing.T) {
			inVeth(t, func(n Netns) {
				err := n.SetQdisc("p0", c.q)
				state, readErr := n.ReadQdisc("p0")
				if readErr != nil {
					t.Fatal(readErr)
				}
				var lacks *Unsupported
				if errors.As(err, &lacks) {
					if want := "unsupported: this kernel has no sch_" + c.q.Kind; !strings.Contains(err.Error(), want) {
						t.Errorf("error %q does not say %q", err, want)
					}
					if state.Kind != "noqueue" {
						t.Errorf("the failed attempt left %+v", state)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if state.Kind != c.q.Kind || !strings.Contains(state.Text, c.text) {
					t.Errorf("read back %+v, want %s with %q", state, c.q.Kind, c.text)
				}
			})
		})
	}
}

// The arguments of CoDel, also if this kernel lacks it, and what reading back finds.
func TestControlledDelay(t *testing.T) {
	q := Qdisc{Kind: "codel", Limit: 9, Target: time.Millisecond, Interval: 20 * time.Millisecond, ECN: new(bool)}
	if got := strings.Join(q.tcArgs("p0")[0], " "); !strings.HasSuffix(got, "codel limit 9 target 1000us interval 20000us noecn") {
		t.Errorf("tc %s", got)
	}
	all, err := parseQdiscs([]byte(`[{"kind":"codel","handle":"d7a:","root":true,"options":{"limit":9,"target":999,"interval":19999,"ecn":true}}]`))
	if err != nil {
		t.Fatal(err)
	}
	if err := rootOf(all).differs(q, ownHandle); err == nil || !strings.Contains(err.Error(), "ecn true") {
		t.Errorf("codel that marks against orders: %v", err)
	}
	q.ECN = nil
	if err := rootOf(all).differs(q, ownHandle); err != nil {
		t.Error(err)
	}
	q.Interval = time.Second
	if err := rootOf(all).differs(q, ownHandle); err == nil {
		t.Error("another interval is not seen")
	}
}

// TestQueueBelowShaper reads back both, and checks that a missing queue kind leaves
// no shaper.
func TestQueueBelowShaper(t *testing.T) {
	testenv.Program(t, "tc")
	inVeth(t, func(n Netns) {
		for _, kind := range []string{"htb", "tbf"} {
			for _, child := range []Qdisc{{Kind: "pfifo", Limit: 77}, {Kind: "bfifo", Limit: 99000}, {Kind: "sfq", Limit: 66}, {Kind: "codel", Limit: 55}, {Kind: "fq_codel"}} {
				err := n.SetQdisc("p0", Qdisc{Kind: kind, Rate: 10e6, Child: &child})
				state, readErr := n.ReadQdisc("p0")
				if readErr != nil {
					t.Fatal(readErr)
				}
				want := "qdisc " + child.Kind + " d7b: parent d7a:1 limit " + strconv.Itoa(child.Limit)
				if child.Limit == 0 {
					want = "qdisc " + child.Kind + " d7b: parent d7a:1"
				}
				var lacks *Unsupported
				switch {
				case errors.As(err, &lacks):
					if lacks.What != "qdisc "+child.Kind || state.Kind != "noqueue" {
						t.Errorf("%s over %s: %v; it left %+v", kind, child.Kind, err, state)
					}
				case err != nil:
					t.Errorf("%s over %s: %v", kind, child.Kind, err)
				case state.Kind != kind || !strings.Contains(state.Text, "rate 10Mbit") || !strings.Contains(state.Text, want):
					t.Errorf("%s over %s: read back %+v", kind, child.Kind, state)
				}
				if err := n.DelQdisc("p0"); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func TestSetQdiscReplacesOnlyItsOwn(t *testing.T) {
	testenv.Program(t, "tc")
	inVeth(t, func(n Netns) {
		for _, q := range []Qdisc{{Kind: "htb", Rate: 5e6}, {Kind: "tbf", Rate: 6e6}} {
			if err := n.SetQdisc("p0", q); err != nil {
				t.Fatal(err)
			}
		}
		if s, err := n.ReadQdisc("p0"); err != nil || !strings.Contains(s.Text, "rate 6Mbit") {
			t.Errorf("after replacement: %+v, %v", s, err)
		}
		for range 2 {
			if err := removeQdisc(QdiscResource(n, "p0")); err != nil {
				t.Fatal(err)
			}
		}
		if err := n.tc("qdisc", "add", "dev", "p0", "root", "pfifo", "limit", "5"); err != nil {
			t.Fatal(err)
		}
		if err := n.SetQdisc("p0", Qdisc{Kind: "tbf", Rate: 6e6}); err == nil {
			t.Error("a foreign root qdisc was replaced")
		}
		if err := removeQdisc(QdiscResource(n, "p0")); err != nil {
			t.Fatal(err)
		}
		if s, err := n.ReadQdisc("p0"); err != nil || s.Kind != "pfifo" {
			t.Errorf("the foreign qdisc was touched: %+v, %v", s, err)
		}
	})
}

func TestQdiscParameters(t *testing.T) {
	cases := []struct {
		q    Qdisc
		want string // part of the error
	}{
		{Qdisc{Kind: "tbf"}, "needs a rate"},
		{Qdisc{Kind: "htb", Rate: 10e6, Ceil: 5e6}, "raise ceil"},
		{Qdisc{Kind: "tbf", Rate: 10e6, Burst: 1500}, "give at least 1514"},
		{Qdisc{Kind: "red"}, "use one of pfifo"},
		{Qdisc{Kind: "pfifo", Child: &Qdisc{Kind: "pfifo"}}, "below a tbf, htb or hfsc"},
		{Qdisc{Kind: "htb", Rate: 10e6, Child: &Qdisc{Kind: "red"}}, "use one of pfifo"},
	}
	for _, c := range cases {
		if _, err := c.q.complete(1500); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.q, err, c.want)
		}
	}
	q, err := Qdisc{Kind: "tbf", Rate: 1e6}.complete(9000)
	if err != nil || q.Burst != 2*9014 {
		t.Errorf("default burst at a low rate is %d (%v), want two frames", q.Burst, err)
	}
}

// TestReadBackNotices shows that the check after setting can fail.
func TestReadBackNotices(t *testing.T) {
	out := `[{"kind":"tbf","handle":"d7a:","root":true,"options":{"rate":1250000,"burst":20000,"lat":50000}}]`
	all, err := parseQdiscs([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	got := rootOf(all)
	asked := Qdisc{Kind: "tbf", Rate: 10e6, Burst: 20000, Latency: 50 * time.Millisecond}
	if err := got.differs(asked, ownHandle); err != nil {
		t.Errorf("equal parameters differ: %v", err)
	}
	for name, change := range map[string]func(*Qdisc){
		"kind":    func(q *Qdisc) { q.Kind = "pfifo" },
		"rate":    func(q *Qdisc) { q.Rate = 11e6 },
		"burst":   func(q *Qdisc) { q.Burst = 30000 },
		"latency": func(q *Qdisc) { q.Latency = time.Millisecond },
	} {
		q := asked
		change(&q)
		if got.differs(q, ownHandle) == nil {
			t.Errorf("a different %s was not noticed", name)
		}
	}
}

func TestProbeQdisc(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, "tc")
	for _, kind := range QdiscKinds() {
		err := ProbeQdisc(kind)
		var lacks *Unsupported
		if err != nil && !errors.As(err, &lacks) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestCheckShaper: a switch makes a root class and its queue's class with equal
// rates. The root class alone does not shape the queue's traffic.
func TestCheckShaper(t *testing.T) {
	testenv.Program(t, "tc")
	want := Qdisc{Kind: "htb", Rate: 10e6}
	inVeth(t, func(n Netns) {
		rates := []string{"htb", "rate", "10mbit", "ceil", "10mbit"}
		class := func(parent, id string) []string {
			return append([]string{"class", "add", "dev", "p0", "parent", parent, "classid", id}, rates...)
		}
		err := n.tc("qdisc", "add", "dev", "p0", "root", "handle", "1:", "htb", "default", "1")
		var lacks *Unsupported
		if errors.As(err, &lacks) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := n.tc(class("1:", "1:fffe")...); err != nil {
			t.Fatal(err)
		}
		if err := n.CheckShaper("p0", want); err == nil || !strings.Contains(err.Error(), "no htb class") {
			t.Errorf("with the root class only: error %v", err)
		}
		if err := n.tc(class("1:fffe", "1:1")...); err != nil {
			t.Fatal(err)
		}
		if err := n.CheckShaper("p0", want); err != nil {
			t.Errorf("with the queue's class: %v", err)
		}
	})
}

// TestCheckShaperWithoutClasses: the kind must be right, and a limit if one is wanted.
func TestCheckShaperWithoutClasses(t *testing.T) {
	testenv.Program(t, "tc")
	inVeth(t, func(n Netns) {
		testenv.Must(t, n.tc("qdisc", "add", "dev", "p0", "root", "handle", "1:", "pfifo", "limit", "50"))
		for want, good := range map[Qdisc]bool{
			{Kind: "pfifo"}: true, {Kind: "pfifo", Limit: 50}: true, {Kind: "pfifo", Limit: 60}: false, {Kind: "sfq"}: false,
		} {
			if err := n.CheckShaper("p0", want); (err == nil) != good {
				t.Errorf("%+v: %v", want, err)
			}
		}
	})
}
