// SPDX-License-Identifier: Apache-2.0

package ovsdpdk

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/vhost"
)

// hasInterface reports whether the end is an interface of this kernel.
func hasInterface(e transport.End) bool { return !vhost.Reached(e) && !e.Native() }

// userNamespace owns the network namespace of the switch's interface sides, so
// that the switch has capabilities only there.
func userNamespace(s transport.Spec) string { return filepath.Join(s.Dir, "switch.user") }

// hasInterfaces reports whether the switch sends to interfaces of this kernel:
// ends, or its end of an underlay.
func (w *ovsSwitch) hasInterfaces() bool {
	return w.tunnel != nil || slices.ContainsFunc(w.spec.Ends, hasInterface)
}

// netns is the network namespace of the switch's interface sides.
func (w *ovsSwitch) netns() host.Netns {
	if w.tunnel != nil {
		return w.tunnel.link.HostNetns(w.tunnel.on)
	}
	return w.spec.SwitchNetns()
}

// createInterfaces are the steps that create the ends with interfaces, each
// with its peer in the switch's network namespace.
func (w *ovsSwitch) createInterfaces() []step.Step {
	s := w.spec
	if !w.hasInterfaces() {
		return nil
	}
	steps := []step.Step{w.createNamespaces()}
	for i, e := range s.Ends {
		if hasInterface(e) {
			steps = append(steps, s.CreatePort(w.driver, i, e))
		}
	}
	return steps
}

// createNamespaces is the step that creates the switch's network namespace.
func (w *ovsSwitch) createNamespaces() step.Step {
	user, ns := userNamespace(w.spec), w.netns()
	return step.Step{
		Name:  w.spec.StepName(w.driver, "create namespaces"),
		Makes: []step.Resource{host.NamespaceResource(user), host.NamespaceResource(ns.Path)},
		Do: func(context.Context) error {
			if err := host.CreateUserNetns(user, ns.Path, w.vswitchd("", nil).Users()...); err != nil {
				return err
			}
			return ns.DisableIPv6()
		},
	}
}

// finishInterfaces adds the last steps of every interface, and those for a
// userspace switch and peers without a kernel.
func (w *ovsSwitch) finishInterfaces(b *transport.Build) {
	s := w.spec
	if !slices.ContainsFunc(s.Ends, hasInterface) {
		return
	}
	for i, e := range s.Ends {
		if hasInterface(e) {
			b.Steps = append(b.Steps, step.Step{
				Name: s.StepName(w.driver, fmt.Sprintf("prepare end %d %s", i+1, e.Name)),
				Do:   func(context.Context) error { return prepareInterface(b, s, e) },
			})
		}
	}
	inner := s
	inner.Ends = slices.DeleteFunc(slices.Clone(s.Ends), func(e transport.End) bool { return !hasInterface(e) })
	b.Finish(w.driver, inner)
	b.Steps = append(b.Steps, step.Step{Name: s.StepName(w.driver, "wait for the switch's ports"), Do: w.awaitInterfaces})
}

func prepareInterface(b *transport.Build, s transport.Spec, e transport.End) error {
	if err := b.SwitchOffload(e, "tx-checksum", false, "the switch forwards unfinished checksums, and no device finishes them"); err != nil {
		return err
	}
	for _, peer := range s.Ends {
		if !peer.Dpdk() || !peer.IP.IsValid() {
			continue
		}
		// No kernel resolves this address.
		if err := e.Netns.AddNeighbour(e.Name, peer.IP.Addr(), peer.MAC); err != nil {
			return err
		}
	}
	return nil
}

// awaitInterfaces waits until the switch's sides are operational. Before that,
// the kernel drops the switch's packets.
func (w *ovsSwitch) awaitInterfaces(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i, e := range w.spec.Ends {
		if !hasInterface(e) {
			continue
		}
		port := w.spec.SwitchPort(i)
		if err := port.Netns.WaitCarrier(ctx, port.Name); err != nil {
			return err
		}
	}
	return nil
}
