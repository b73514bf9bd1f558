// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strings"
	"testing"
)

func TestOffloads(t *testing.T) {
	inVeth(t, func(n Netns) {
		text, err := n.Offloads("p0")
		if err != nil || !strings.HasPrefix(text, "tso on, gso on, gro ") {
			t.Fatalf("offloads of a new veth: %q, %v", text, err)
		}
		for _, feature := range []string{"tx", "tso", "gso", "tx-generic-segmentation"} {
			for _, on := range []bool{false, true} {
				if err := n.SetOffload("p0", feature, on); err != nil {
					t.Errorf("%s %v: %v", feature, on, err)
				}
			}
		}
		if err := n.SetOffload("p0", "tx", false); err != nil {
			t.Fatal(err)
		}
		// Segmentation needs checksums: the kernel switches it off with them.
		text, err = n.Offloads("p0")
		if err != nil || !strings.Contains(text, "tx-checksum off") || !strings.Contains(text, "tso off") {
			t.Errorf("after tx off: %q, %v", text, err)
		}
		if err := n.SetOffload("p0", "lro", true); err == nil || !strings.Contains(err.Error(), "fixed") {
			t.Errorf("switching a fixed feature: %v", err)
		}
		if _, err := n.Offloads("nope"); err == nil {
			t.Error("an interface that is not there has offloads")
		}
	})
}
