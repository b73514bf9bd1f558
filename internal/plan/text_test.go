// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// The last class takes the rest too, if no other does.
func TestTheLastClassTakesTheRest(t *testing.T) {
	q := &chain.Qdisc{Kind: "prio", Classes: []chain.Class{{Name: "a", DSCP: []int{1, 2}}, {Name: "b", PCP: []int{3}}}}
	rows := classRows("l", "each", q)
	if want := []string{"l\teach\ta\tdscp 1,2\t-\t-", "l\teach\tb\tpcp 3, the rest\t-\t-"}; !slices.Equal(rows, want) {
		t.Errorf("%q", rows)
	}
	q.Classes = append(q.Classes, chain.Class{Name: "c"}, chain.Class{Name: "d", DSCP: []int{3}})
	if last := classRows("l", "each", q)[3]; strings.Contains(last, "rest") {
		t.Errorf("%q", last)
	}
}

func TestOneOfAKind(t *testing.T) {
	if got := shapeText(&chain.Qdisc{Kind: "prio", Classes: make([]chain.Class, 1)}); got != "prio over 1 class" {
		t.Error(got)
	}
	if got := queueText(&chain.Qdisc{Kind: "bfifo", Limit: 1}); got != "bfifo of 1 byte" {
		t.Error(got)
	}
	if got := queueText(&chain.Qdisc{Kind: "pfifo", Limit: 2}); got != "pfifo of 2 packets" {
		t.Error(got)
	}
	if got := freeText(0, 2); got != "none of the host's 2 CPUs is free" {
		t.Error(got)
	}
	if got := freeText(0, 0); got != "other chains have all of the host's CPUs" {
		t.Error(got)
	}
	p := mustPlan(t, shares(nil, 0.999), loadInventory(t, "server8"))
	if w := p.Warnings[0]; !strings.HasPrefix(w, "CPU 4: function f0 has 99.9% of it, and the kernel") {
		t.Error(w)
	}
}

func TestMemoryOfTheHostIsRounded(t *testing.T) {
	for b, want := range map[units.Bytes]string{24683652 << 10: "23.5Gi", 8 << 30: "8Gi", 1<<30 - 1: "1023.9Mi", 17: "17", 3 << 40: "3Ti"} {
		if got := rounded(b); got != want {
			t.Errorf("%d bytes are %s, want %s", b, got, want)
		}
	}
}
