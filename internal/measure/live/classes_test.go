// SPDX-License-Identifier: Apache-2.0

package live

import (
	"math"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/link/broker"
)

func TestClassesText(t *testing.T) {
	l := Link{Chain: "c", Status: broker.LinkStatus{Name: "l", Ends: []broker.EndStatus{{Function: "du", Port: "p"}, {Function: "cu", Port: "p"}}}}
	show := func() string {
		t.Helper()
		var b strings.Builder
		if err := ClassesText(&b, []Link{l}, 0); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := show(); got != "" {
		t.Errorf("without classes: %q", got)
	}
	s := &broker.ClassesStatus{Reported: true, AsOrdered: true, Scheduler: "prio", Rate: 1e9, Classes: []broker.ClassStatus{
		{Name: "urgent", Discipline: "slot", Sent: 12, Dropped: 3, Late: 4, Marked: 5, Queued: 6, LongestNS: 7000}}}
	l.Status.Ends[0].Classes = s
	for _, want := range []string{"c/du.p: prio at 1Gbps\n", "  urgent       slot   12", "7us"} {
		if got := show(); !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	s.AsOrdered = false
	if got := show(); !strings.Contains(got, "not as ordered") {
		t.Errorf("another order is not shown:\n%s", got)
	}
	s.Error = "it cannot"
	if got := show(); !strings.Contains(got, "it cannot") {
		t.Errorf("the error is not shown:\n%s", got)
	}
	l.Status.Ends[0].Classes = &broker.ClassesStatus{}
	if got := show(); !strings.Contains(got, "has not reported") {
		t.Errorf("without a report:\n%s", got)
	}
}

func TestClassMetrics(t *testing.T) {
	l := Link{Chain: "c", Status: broker.LinkStatus{Name: "l", Ends: []broker.EndStatus{{Function: "du", Port: "p"}, {Function: "cu", Port: "p"}}}}
	l.Status.Ends[0].Classes = &broker.ClassesStatus{Reported: true, AsOrdered: true, Scheduler: "prio", Classes: []broker.ClassStatus{
		{Name: "urgent", Sent: 12, SentBytes: 1200, Dropped: 3, Late: 4, Marked: 5, Queued: 6, QueuedBytes: 600}, {Name: "rest", Sent: math.MaxUint64}}}
	l.Status.Ends[1].Classes = &broker.ClassesStatus{}
	text, err := metricsText(collectorOf([]Link{l}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`dray_port_classes_as_ordered{chain="c",link="l",port="du.p"} 1`,
		`dray_port_classes_as_ordered{chain="c",link="l",port="cu.p"} 0`,
		`dray_class_packets_total{chain="c",class="urgent",link="l",port="du.p"} 12`,
		`dray_class_bytes_total{chain="c",class="urgent",link="l",port="du.p"} 1200`,
		`dray_class_dropped_packets_total{chain="c",class="urgent",link="l",port="du.p"} 3`,
		`dray_class_late_packets_total{chain="c",class="urgent",link="l",port="du.p"} 4`,
		`dray_class_marked_packets_total{chain="c",class="urgent",link="l",port="du.p"} 5`,
		`dray_class_queued_packets{chain="c",class="urgent",link="l",port="du.p"} 6`,
		`dray_class_queued_bytes{chain="c",class="urgent",link="l",port="du.p"} 600`,
		`dray_class_packets_total{chain="c",class="rest",link="l",port="du.p"} 1.84467`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %s\n%s", want, text)
		}
	}
}
