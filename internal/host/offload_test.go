// SPDX-License-Identifier: Apache-2.0

package host

import (
	"runtime"
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
		// Segmentation needs checksums: the kernel turns both off.
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

// TestOffloadsOnAMovingStack: the kernel's answers arrive while the stack grows at
// any depth, and while the garbage collector shrinks it.
func TestOffloadsOnAMovingStack(t *testing.T) {
	inVeth(t, func(n Netns) {
		want, err := n.Offloads("p0")
		if err != nil {
			t.Fatal(err)
		}
		err = n.Do(func() error {
			e, err := openEthtool("p0")
			if err != nil {
				return err
			}
			defer e.close()
			stop := make(chan struct{})
			defer close(stop)
			go func() {
				for {
					select {
					case <-stop:
						return
					default:
						runtime.GC()
					}
				}
			}()
			for depth := range 256 {
				atDepth(depth, func() {
					states, err := e.features()
					if err != nil || describeOffloads(states) != want {
						t.Errorf("at depth %d: %q, %v, want %q", depth, describeOffloads(states), err, want)
					}
				})
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// atDepth calls f on a new stack, below that many frames.
func atDepth(depth int, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		descend(depth, f)
	}()
	<-done
}

//go:noinline
func descend(depth int, f func()) {
	var frame [64]byte
	if depth > 0 {
		descend(depth-1, f)
	} else {
		f()
	}
	runtime.KeepAlive(&frame)
}
