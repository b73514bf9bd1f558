// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/link/broker"
)

// A link whose ports applications hold is judged by their own traffic:
//
//	a: p0 ── good ── p0 :b   400 round trips a second, within a second
//	a: p1 ── late ── p1 :b   the same, which must take 1 ns
//	a: p2 ── idle ── p2 :b   opened at b, and nothing is sent
const heldChain = `apiVersion: drayage/v1
kind: Chain
name: held
policy: {on_infeasible: warn}
functions:
  - {name: a, runtime: process, ports: [{name: p0, face: native}, {name: p1, face: native}, {name: p2, face: native}]}
  - {name: b, runtime: process, ports: [{name: p0, face: native}, {name: p1, face: native}, {name: p2, face: native}]}
links:
  - {name: good, ends: [a.p0, b.p0], requires: {latency: 1s, percentile: 90, packet_delay_variation: 1s, packet_loss_ratio: 0.1}}
  - {name: late, ends: [a.p1, b.p1], requires: {latency: 1ns, percentile: 90}}
  - {name: idle, ends: [a.p2, b.p2], requires: {latency: 1s, max_bitrate: 1Gbps}}
`

func TestOwnTrafficIsVerified(t *testing.T) {
	t.Parallel()
	draygen := generator(t)
	b := newBench(t)
	b.want(0, "up", b.file(heldChain))
	defer b.want(0, "down", "held")
	for _, port := range []string{"p0", "p1"} {
		b.background("exec", "held", "b", "--", draygen, "sink", "--port", "dray:"+port, "--reflect", "--duration", "200s")
		b.background("exec", "held", "a", "--", draygen, "ping", "--port", "dray:"+port, "--rate", "400pps", "--duration", "200s")
	}
	b.background("exec", "held", "b", "--", draygen, "sink", "--port", "dray:p2", "--duration", "200s")
	b.awaitLinks("held", 3, func(l broker.LinkStatus) bool {
		return l.State == broker.StateActive || l.Name == "idle" && l.State == broker.StateHalf
	})

	// So many rounds that some without a CPU for a program decide nothing.
	v := decode[verdicts](t, b.want(missed, "verify", "held", "--json", "--rounds", "12", "--duration", "1s", "--out", filepath.Join(t.TempDir(), "out")))
	for _, want := range []struct{ link, requirement, verdict, text string }{
		{"good", "latency", "met", "passive"}, {"good", "packet_delay_variation", "met", "passive"}, {"good", "packet_loss_ratio", "met", "passive"},
		{"late", "latency", "missed", "passive"},
		{"idle", "latency", "not measurable", "sent nothing"}, {"idle", "max_bitrate", "not measurable", "sent nothing"},
	} {
		found := false
		for _, got := range v.Verdicts {
			if got.Link != want.link || got.Requirement != want.requirement {
				continue
			}
			found = true
			if got.Verdict != want.verdict || !strings.Contains(got.Basis+got.Reason, want.text) || len(got.Directions) != 2 {
				t.Errorf("%s of %s: want %s, got %+v", want.requirement, want.link, want.verdict, got)
			}
			for _, d := range got.Directions {
				if d.Verdict != want.verdict {
					t.Errorf("%s of %s, %s: want %s, got %s", want.requirement, want.link, d.Direction, want.verdict, d.Verdict)
				}
			}
		}
		if !found {
			t.Errorf("no verdict on %s of %s", want.requirement, want.link)
		}
	}
}

// background runs dray until the test ends.
func (b *bench) background(args ...string) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := b.command(ctx, args...)
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { cancel(); _ = cmd.Wait() })
}
