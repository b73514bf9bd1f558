// SPDX-License-Identifier: Apache-2.0

package loopback_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/loopback"
	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

func TestConformance(t *testing.T) { transporttest.Run(t, loopback.New()) }

// TestKeepsWhatWasThere: lo belongs to the function. The driver rejects what
// lo already has, names it, and does not remove it.
func TestKeepsWhatWasThere(t *testing.T) {
	testenv.Root(t)
	testenv.Kernel(t, loopback.New().Probe(context.Background()))
	ip := netip.MustParsePrefix("192.0.2.1/32")
	cases := []struct {
		name    string
		prepare func(host.Netns) error
		there   func(host.Netns) (bool, error)
		want    string
	}{
		{"address", func(ns host.Netns) error { return ns.AddAddr("lo", ip) }, func(ns host.Netns) (bool, error) {
			s, err := ns.ReadLink("lo")
			return slices.Contains(s.Addrs, ip), err
		}, "give port f1u0 another"},
		{"name", func(ns host.Netns) error { return ns.AddAltName("lo", "f1u1") }, func(ns host.Netns) (bool, error) {
			s, err := ns.ReadLink("lo")
			return slices.Contains(s.AltNames, "f1u1"), err
		}, "give the port another name"},
		{"qdisc", func(ns host.Netns) error { return ns.SetQdisc("lo", host.Qdisc{Kind: "pfifo"}) }, func(ns host.Netns) (bool, error) {
			s, err := ns.ReadQdisc("lo")
			return s.Kind == "pfifo", err
		}, "one loopback link"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			shape := &chain.Qdisc{Kind: "bfifo"}
			r := transporttest.NewRig(t, loopback.New(), transporttest.Options{Shape: shape})
			ns := r.Spec.Ends[0].Netns
			if err := c.prepare(ns); err != nil {
				t.Fatal(err)
			}
			err := r.Try(r.Steps(), func(step.Step, step.Phase) error { return nil })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if there, err := c.there(ns); err != nil || !there {
				t.Errorf("the earlier state was removed (%v)", err)
			}
		})
	}
}
