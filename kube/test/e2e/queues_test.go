// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/spec/manifest"
)

// queued is what a sink of two streams printed: of the first as every sink, and of the bulk.
type queued struct {
	Received, Lost int64
	Bulk           struct {
		Received int64
		Bps      float64 `json:"receive_bps"`
	}
}

// offers sends control messages, and a bulk of 200 Mb/s: draygen's arguments for the port are added. The control
// messages are few: their queue, of 256 packets, holds those of the seconds for which a busy machine may not run the sink.
const offers = "exec draygen send --dscp 48 --rate 20kbps --bulk 200Mbps,dscp=0,size=1400 --peer-timeout 180s --port "

// inexact is how many times its limit the rate of a bulk may seem to be. A sink that waited for its CPU takes at once
// what came meanwhile, up to a second of it. What these tests offer is twice the limit or more.
const inexact = 1.5

// takes is the end of a sink, which prints what it had.
func (c *cluster) takes(pod string) (q queued) {
	c.t.Helper()
	c.end(pod)
	lines := strings.Split(strings.TrimSpace(c.in("logs", pod)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &q); err != nil {
		c.t.Fatalf("%s: %v", lines, err)
	}
	return q
}

// overloaded waits until a class of a chain's only link has dropped many packets, and returns what all have.
func (c *cluster) overloaded(dray func(args ...string) (string, int), chain, class string) (s broker.ClassesStatus) {
	c.t.Helper()
	c.until("drops of class "+class, func() error {
		out, _ := dray("top", chain, "--samples", "1", "--json")
		var sample live.Sample
		if err := json.Unmarshal([]byte(out), &sample); err != nil || len(sample.Links) != 1 || len(sample.Links[0].Status.Ends) == 0 {
			return errors.Join(err, fmt.Errorf("%+v", sample.Links))
		}
		s = *sample.Links[0].Status.Ends[0].Classes
		for _, one := range s.Classes {
			if one.Name == class && one.Dropped > 10_000 {
				return nil
			}
		}
		return fmt.Errorf("%+v", s)
	})
	return s
}

/*
The chain of examples/traffic-classes.yaml, in two restricted pods of one node:

	pod du ── f1, 100 Mb/s ── pod cu
	(sends 20 kb/s of control and 200 Mb/s of the user plane)
*/
func TestTrafficClassesInPods(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const file = "../../../examples/traffic-classes.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Make(file, text)
	if err != nil {
		t.Fatal(err)
	}
	dray := c.plugin()
	c.apply(m.YAML)
	c.apply(pod{name: "cu", template: "classes-cu", command: "exec draygen sink --port dray:f1"}.manifest())
	c.apply(pod{name: "du", template: "classes-du", command: offers + "dray:f1"}.manifest())
	c.ready("cu", "du")
	s := c.overloaded(dray, "classes", "user")
	control := s.Classes[0]
	if !s.AsOrdered || s.Scheduler != "htb" || s.Rate != 100e6 || len(s.Classes) != 3 || control.Name != "control" || control.Sent == 0 || control.Dropped > 0 || s.Classes[1].Discipline != "fq_codel" {
		t.Errorf("%+v", s)
	}
	if out, _ := dray("top", "classes", "--samples", "1"); !strings.Contains(out, "/classes/du.f1: htb at 100Mbps") {
		t.Errorf("the table has no classes: %s", out)
	}
	c.until("the classes in the metrics", func() error {
		metrics, err := c.metricsOf("du")
		if want := fmt.Sprintf(`dray_port_classes_as_ordered{chain="classes",link="f1",namespace="%s",port="du.f1"} 1`, c.namespace); err != nil || !strings.Contains(metrics, want) {
			return fmt.Errorf("no %s: %w", want, err)
		}
		return nil
	})
	sender, receiver := c.end("du"), c.takes("cu")
	if receiver.Received == 0 || receiver.Lost != 0 || receiver.Received > sender.Sent {
		t.Errorf("control messages: sent %+v, received %+v", sender, receiver)
	}
	if receiver.Bulk.Received == 0 || receiver.Bulk.Bps > inexact*100e6 {
		t.Errorf("the bulk: %+v", receiver.Bulk)
	}
	t.Logf("%d control messages, 0 lost; the bulk has %.1f Mb/s", receiver.Received, receiver.Bulk.Bps/1e6)
}

// A limit of native ports is libdray's on one node. It holds when the link crosses nodes, while the port of the pod
// that stays is open.
func TestALimitHoldsOnBothWays(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.awaitNetwork()
	dray := c.plugin()
	c.apply(strings.Replace(strings.Replace(f1, "mtu: 1600", "mtu: 1450", -1), "latency: 100ms, percentile: 90", "max_bitrate: 40Mbps", 1))
	c.apply(pod{name: "cu-up", function: "cu-up", command: offers + "dray:f1u", node: "n1"}.manifest())
	for _, where := range []struct{ node, transport string }{{"n1", "shm"}, {"n2", "vxlan"}} {
		c.apply(pod{name: "du", function: "du", command: "exec draygen sink --port dray:f1u", node: where.node}.manifest())
		c.ready("cu-up", "du")
		c.awaitTransport(where.transport)
		if s := c.overloaded(dray, "f1", "all"); !s.AsOrdered || s.Rate != 40e6 {
			t.Errorf("%s: %+v", where.transport, s)
		}
		c.getsMore("du", "du.f1u", 10_000)
		got := c.takes("du")
		if got.Bulk.Received == 0 || got.Bulk.Bps > inexact*40e6 {
			t.Errorf("%s: %+v", where.transport, got)
		}
		t.Logf("%s: the bulk has %.1f Mb/s", where.transport, got.Bulk.Bps/1e6)
		c.in("delete", "pod", "du")
	}
}
