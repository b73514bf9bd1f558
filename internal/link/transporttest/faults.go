// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
)

// Fault injects a failure at a step, or returns nil.
type Fault func(step.Step, step.Phase) error

// World is where a link is set up with faults. A rig is the real one.
type World interface {
	// Steps returns the steps of a link that does not exist yet.
	Steps() []step.Step
	// Try runs them with injected faults.
	Try(steps []step.Step, fault Fault) error
	// Clean fails the test unless nothing is left of the link.
	Clean(when string)
}

// Steps builds the rig's link.
func (r *Rig) Steps() []step.Step { return r.build().Steps }

// Try runs steps as the product does.
func (r *Rig) Try(steps []step.Step, fault Fault) error {
	return r.run(context.Background(), steps, fault)
}

var errInjected = errors.New("injected fault")

// RunFaults fails every step of a link in turn, before and after its action,
// and checks that nothing is left each time. The steps come from the driver,
// so a new one cannot be forgotten.
func RunFaults(t *testing.T, newWorld func(*testing.T) World) {
	w := newWorld(t)
	steps := w.Steps()
	names := map[string]bool{}
	for _, s := range steps {
		if names[s.Name] {
			t.Fatalf("two steps have the name %q", s.Name)
		}
		names[s.Name] = true
	}
	injected := 0
	for i := range steps {
		for _, phase := range []step.Phase{step.Before, step.After} {
			steps := w.Steps()
			target := steps[i].Name
			err := w.Try(steps, func(s step.Step, p step.Phase) error {
				if s.Name != target || p != phase {
					return nil
				}
				injected++
				return errInjected
			})
			if !errors.Is(err, errInjected) {
				t.Errorf("a fault %s %q gave %v", phase, target, err)
			}
			w.Clean(fmt.Sprintf("after a fault %s %q", phase, target))
		}
	}
	if len(steps) == 0 || injected != 2*len(steps) {
		t.Errorf("%d faults were injected into %d steps, two each are due", injected, len(steps))
	}
}

// testCancel cancels a set-up at the start and half-way.
func testCancel(t *testing.T, d transport.Driver, o Options) {
	r := NewRig(t, d, o)
	steps := r.Steps()
	for _, at := range []int{-1, 0, len(steps) / 2, len(steps) - 2} {
		if at > len(steps)-2 {
			continue // after the last step there is nothing to cancel
		}
		ctx, cancel := context.WithCancel(context.Background())
		if at < 0 {
			cancel()
		}
		b := r.build()
		err := r.run(ctx, b.Steps, func(s step.Step, p step.Phase) error {
			if at >= 0 && p == step.After && s.Name == b.Steps[at].Name {
				cancel()
			}
			return nil
		})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled after step %d: error %v", at, err)
		}
		r.Clean(fmt.Sprintf("cancelled after step %d", at))
	}
}

// testVanish removes the namespace of the last port half-way, as when a
// container dies: set-up must fail, and leave nothing at the other ends.
func testVanish(t *testing.T, d transport.Driver, o Options) {
	readBack := slices.IndexFunc(NewRig(t, d, o).Steps(), func(s step.Step) bool {
		return strings.HasSuffix(s.Name, ": read back")
	})
	if readBack < 1 {
		t.Fatal("no step reads the ports back")
	}
	for _, at := range []int{0, readBack / 2, readBack - 1} {
		r := NewRig(t, d, o)
		ports := r.Spec.Ports()
		victim := ports[len(ports)-1].Netns
		b := r.build()
		err := r.run(context.Background(), b.Steps, func(s step.Step, p step.Phase) error {
			if p == step.After && s.Name == b.Steps[at].Name {
				runner := step.Runner{Removers: host.Removers()}
				return runner.Remove(context.Background(), []step.Resource{host.NamespaceResource(victim.Path)})
			}
			return nil
		})
		if err == nil {
			t.Errorf("a namespace vanished after %q, but set-up succeeded", b.Steps[at].Name)
		}
		r.before = withoutNetns(r.before, victim)
		r.settle() // the kernel removes a dead namespace's interfaces with a delay
		r.Clean(fmt.Sprintf("after a namespace vanished after %q", b.Steps[at].Name))
	}
}

// testReadBack removes a port's address just before the step that reads back,
// which must detect it.
func testReadBack(t *testing.T, d transport.Driver, o Options) {
	r := NewRig(t, d, o)
	port := r.Spec.Ports()[0]
	ip := port.IP
	if d.Caps().SameNetns {
		ip = netip.PrefixFrom(ip.Addr(), ip.Addr().BitLen())
	}
	err := r.Try(r.Steps(), func(s step.Step, p step.Phase) error {
		if p != step.Before || !strings.HasSuffix(s.Name, ": read back") {
			return nil
		}
		runner := step.Runner{Removers: host.Removers()}
		return runner.Remove(context.Background(), []step.Resource{host.AddressResource(port.Netns, port.Name, ip)})
	})
	if err == nil || !strings.Contains(err.Error(), "address") {
		t.Errorf("a port without its address gave %v", err)
	}
	r.Clean("after reading back failed")
}
