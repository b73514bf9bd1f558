// SPDX-License-Identifier: Apache-2.0

package dpdkring

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/spec/chain"
)

func TestConformance(t *testing.T) { transporttest.RunDpdk(t, New(), 0, 1) }

// TestEnds rejects functions that cannot be two processes of one EAL.
func TestEnds(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(a, b *transport.End)
		want string // error text; empty: none
	}{
		"two processes": {func(a, b *transport.End) {}, ""},
		"runc":          {func(a, b *transport.End) { b.Runtime = chain.RuntimeRunc }, "function b has the runtime runc"},
		"two users":     {func(a, b *transport.End) { b.User = 1000 }, "different users of the host (0 and 1000)"},
		"external":      {func(a, b *transport.End) { b.Runtime = chain.RuntimeExternal }, "function b has the runtime external"},
		"docker":        {func(a, b *transport.End) { a.Runtime = chain.RuntimeDocker }, "function a has the runtime docker"},
		"one function":  {func(a, b *transport.End) { b.Function = "a" }, "both ends are ports of a"},
		"queues":        {func(a, b *transport.End) { a.Queues = 2 }, "port p0 has 2 queues"},
	} {
		s := transport.Spec{Link: "n3", Ends: []transport.End{
			{Function: "a", Name: "p0", Runtime: chain.RuntimeProcess}, {Function: "b", Name: "p1", Runtime: chain.RuntimeProcess},
		}}
		test.edit(&s.Ends[0], &s.Ends[1])
		err := checkEnds(s)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v; want %q", name, err, test.want)
		}
	}
}
