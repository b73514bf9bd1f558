// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// A bridge drops a frame whose source is the broadcast address, so a reflector answers a broadcast
// from its own:
//
//	draygen ping ── a.p0 ═══ bridge ═══ b.p0 ── draygen sink --reflect
func TestTheReflectorAnswersThroughABridge(t *testing.T) {
	t.Parallel()
	draygen := generator(t)
	b := newBench(t)
	b.want(0, "up", b.file(pair{Name: "reflects", Face: "native", Transport: "bridge", Command: `[sleep, "1000"]`}.yaml()))
	defer b.want(0, "down", "reflects")
	b.background("exec", "reflects", "b", "--", draygen, "sink", "--port", "dray:p0", "--reflect", "--duration", "200s")
	out := strings.TrimSpace(b.want(0, "exec", "reflects", "a", "--", draygen, "ping", "--port", "dray:p0", "--packets", "20", "--rate", "20pps", "--timeout", "20s").Stdout)
	var got struct{ Sent, Received int }
	if err := json.Unmarshal([]byte(out[strings.LastIndexByte(out, '\n')+1:]), &got); err != nil || got.Received == 0 {
		t.Errorf("%v, %+v: %s", err, got, out) // a busy host may send or reflect fewer than 20
	}
}
