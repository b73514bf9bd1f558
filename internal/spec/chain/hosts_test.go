// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHostsAreRead(t *testing.T) {
	c, err := Load("testdata/good/hosts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := &Hosts{
		Names:    []string{"edge", "core-1", "core-2"},
		Underlay: Underlay{Rate: 10e9, Delay: 50e3, MTU: 9000},
	}
	if diff := cmp.Diff(want, c.Hosts, ignorePositions); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if line := c.Hosts.Underlay.FieldPos["delay"].Line; line != 10 {
		t.Errorf("the delay is in line %d", line)
	}
	if got := c.Simulated(&c.Links[0]); !slices.Equal(got, []string{"edge", "core-1"}) {
		t.Errorf("f1u is on %v", got)
	}
	if got := c.Simulated(&c.Links[1]); !slices.Equal(got, []string{"core-1"}) {
		t.Errorf("n3 is on %v", got)
	}
	if diff := cmp.Diff(c, throughJSON(t, c), comparePrefixes, ignorePositions, ignoreHasLoad); diff != "" {
		t.Errorf("before (-) and after JSON (+) differ:\n%s", diff)
	}
}

// TestUnderlayHasDefaults: no rate, no delay, and room for a tunnel.
func TestUnderlayHasDefaults(t *testing.T) {
	c, err := Parse("", []byte("apiVersion: drayage/v1\nkind: Chain\nname: c\nhosts: {names: [a, b]}\nfunctions: [{name: f, host: b}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if u := c.Hosts.Underlay; u.Rate != 0 || u.Delay != 0 || u.MTU != 1600 {
		t.Errorf("the underlay is %+v", u)
	}
}
