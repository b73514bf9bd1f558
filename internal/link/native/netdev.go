// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Wrap adds native ends to a driver of network interfaces. Such an end's
// interface is in the link's own namespace, without an address, so no kernel
// answers for the application. The broker opens packet sockets on it and
// passes them to the application, which needs no capability.
func Wrap(d transport.Driver) transport.Driver { return wrapped{d} }

type wrapped struct{ transport.Driver }

// Caps implements transport.Driver.
func (w wrapped) Caps() inventory.Caps {
	caps := w.Driver.Caps()
	caps.Faces = append(slices.Clone(caps.Faces), string(chain.FaceNative), string(chain.FaceDPDK))
	return caps
}

// Removers implements transport.Cleaner.
func (w wrapped) Removers() step.Removers {
	all := Removers()
	if c, ok := w.Driver.(transport.Cleaner); ok {
		for kind, remove := range c.Removers() {
			all[kind] = remove
		}
	}
	return all
}

// Build implements transport.Driver.
func (w wrapped) Build(s transport.Spec) (*transport.Build, error) {
	if !slices.ContainsFunc(s.Ends, transport.End.Brokered) {
		return w.Driver.Build(s)
	}
	if err := transport.Check(w.Name(), w.Caps(), s); err != nil {
		return nil, err
	}
	inner := s
	inner.Ends = slices.Clone(s.Ends)
	interfaces := map[int]host.Netns{}
	var before []step.Step
	for i, e := range s.Ends {
		if !e.Brokered() {
			continue
		}
		ns := host.Netns{Path: filepath.Join(s.Dir, fmt.Sprintf("native%d.net", i+1))}
		before = append(before, s.CreateNetns(w.Name(), fmt.Sprintf("create namespace of native end %d", i+1), ns))
		inner.Ends[i].Netns, inner.Ends[i].Face, inner.Ends[i].IP = ns, chain.FaceNetdev, netip.Prefix{}
		interfaces[i] = ns
	}
	build, err := w.Driver.Build(inner)
	if err != nil {
		return nil, err
	}
	build.Steps = append(before, build.Steps...)
	for _, e := range s.Ports() {
		if !e.Brokered() {
			build.Steps = append(build.Steps, meetNative(build, w.Name(), s, e))
		}
	}
	return build, Serve(build, w.Name(), s, broker.KindNetdev, interfaces)
}

// meetNative prepares an interface for peers that see raw frames. It disables
// segmentation offload, and sets the peers' hardware addresses, since no
// kernel resolves them. A DPDK application that forwards a packet does not know that
// its checksum is missing, and the next kernel would drop it: so this one completes it.
func meetNative(b *transport.Build, driver string, s transport.Spec, e transport.End) step.Step {
	return step.Step{
		Name: s.StepName(driver, "prepare "+e.Name+" for native peers"),
		Do: func(context.Context) error {
			for _, feature := range []string{"tso", "gso", "tx-udp-segmentation"} {
				if err := b.SwitchOffload(e, feature, false, "a native peer accepts frames of at most the MTU"); err != nil {
					return err
				}
			}
			if slices.ContainsFunc(s.Ports(), transport.End.Dpdk) {
				if err := b.SwitchOffload(e, "tx-checksum", false, "a DPDK application forwards packets as they are"); err != nil {
					return err
				}
			}
			for _, peer := range s.Ports() {
				if !peer.Brokered() || !peer.IP.IsValid() {
					continue
				}
				if err := e.Netns.AddNeighbour(e.Name, peer.IP.Addr(), peer.MAC); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
