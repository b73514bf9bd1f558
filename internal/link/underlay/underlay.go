// SPDX-License-Identifier: Apache-2.0

// Package underlay creates the simulated hosts of a chain, one network
// namespace each. A switch in its own namespace joins them, over lines with a
// stated rate and delay.
package underlay

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
)

const (
	device     = "eth0" // each host's end of its line
	bridgeName = "br0"
	// carrierTimeout bounds the wait for the lines, and for the switch to
	// forward; the kernel takes up to a second.
	carrierTimeout = 10 * time.Second
)

// subnet is the underlay's address range, from RFC 6598 (shared space between
// networks); ports use RFC 2544 addresses. Each host has an equal part of it.
var subnet = netip.MustParsePrefix("100.64.0.0/15")

// part is how many addresses of the subnet a host has: its own and its
// tunnels'. They exclude the subnet's first and last address.
const part = 8192

// Spec is an underlay to create.
type Spec struct {
	Chain string
	Dir   string // created by the first step, and removed last
	chain.Hosts
}

// Report is the underlay as read from the kernel.
type Report struct {
	Qdiscs []transport.QdiscState `json:"qdiscs"` // of both ends of each line
}

// Build is the steps and the report of an underlay.
type Build struct {
	Steps  []step.Step
	Report *Report // filled in by the steps as they run
}

// At returns the simulated host of that name, which exists after the steps
// have run.
func (s Spec) At(name string) (transport.Host, error) {
	i := slices.Index(s.Names, name)
	if i < 0 {
		return transport.Host{}, fmt.Errorf("the chain has no host %q", name)
	}
	return transport.Host{Name: name, Netns: s.netns("host-" + name), Device: device, Addr: address(i)}, nil
}

// address is the address of host i.
func address(i int) netip.Prefix {
	b := subnet.Addr().As4()
	n := i*part + 1
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{b[0], b[1] + byte(n>>16), byte(n >> 8), byte(n)}), subnet.Bits())
}

func (s Spec) netns(name string) host.Netns {
	return host.Netns{Path: filepath.Join(s.Dir, name+".net")}
}

// iface is an interface of the underlay, with a MAC that is stable for one
// chain and role.
func (s Spec) iface(ns host.Netns, name, role string) host.Iface {
	mac := transport.Spec{Chain: s.Chain}.SwitchMAC("underlay " + role)
	return host.Iface{Netns: ns, Name: name, MAC: mac, MTU: s.Underlay.MTU}
}

// Build returns the steps that create the underlay, and runs none of them.
func (s Spec) Build() *Build {
	b := &Build{Report: &Report{Qdiscs: []transport.QdiscState{}}}
	b.add("create directory", host.DirResource(s.Dir), func(context.Context) error { return os.MkdirAll(s.Dir, 0o711) })
	sw := s.netns("switch")
	b.add("create the switch's namespace", host.NamespaceResource(sw.Path), func(context.Context) error { return createNetns(sw) })
	br := s.iface(sw, bridgeName, "switch")
	b.add("create switch", host.LinkResource(sw, br.Name, br.MAC), func(context.Context) error {
		if err := host.CreateBridge(br); err != nil {
			return err
		}
		return sw.SetUp(br.Name)
	})
	for i, name := range s.Names {
		ns, addr := s.netns("host-"+name), address(i)
		near := s.iface(ns, device, "host "+name)
		far := s.iface(sw, fmt.Sprintf("p%d", i+1), "line "+name)
		b.add("create host "+name, host.NamespaceResource(ns.Path), func(context.Context) error { return createNetns(ns) })
		b.add("create line of "+name, host.LinkResource(ns, near.Name, near.MAC), func(context.Context) error { return connect(near, far, addr) })
		b.shape("shape line from "+name, near, s.fromHost())
		b.shape("shape line to "+name, far, s.toHost())
	}
	b.Steps = append(b.Steps, step.Step{Name: "underlay: read back", Do: s.readBack})
	return b
}

func (b *Build) add(what string, makes step.Resource, do func(context.Context) error) {
	b.Steps = append(b.Steps, step.Step{Name: "underlay: " + what, Makes: []step.Resource{makes}, Do: do})
}

func createNetns(ns host.Netns) error {
	if err := host.CreateNetns(ns.Path); err != nil {
		return err
	}
	return ns.DisableIPv6()
}

// connect creates a line from a host to the switch.
func connect(near, far host.Iface, addr netip.Prefix) error {
	for _, do := range []func() error{
		func() error { return host.CreateVeth(near, far) },
		func() error { return far.Netns.SetMaster(far.Name, bridgeName) },
		func() error { return near.Netns.AddAddr(near.Name, addr) },
		func() error { return near.Netns.SetUp(near.Name) },
		func() error { return far.Netns.SetUp(far.Name) },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// readBack compares each host's end of its line with the spec, and waits until
// the switch forwards.
func (s Spec) readBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, carrierTimeout)
	defer cancel()
	sw := s.netns("switch")
	for i, name := range s.Names {
		ns, far := s.netns("host-"+name), fmt.Sprintf("p%d", i+1)
		if err := ns.WaitCarrier(ctx, device); err != nil {
			return err
		}
		if err := sw.WaitForwarding(ctx, far); err != nil {
			return err
		}
		for _, end := range []struct {
			ns   host.Netns
			name string
		}{{ns, device}, {sw, far}} {
			got, err := end.ns.ReadLink(end.name)
			switch {
			case err != nil:
				return err
			case got.MTU != s.Underlay.MTU:
				return fmt.Errorf("the underlay of host %s has MTU %d, not %d", name, got.MTU, s.Underlay.MTU)
			case end.ns == ns && !slices.Contains(got.Addrs, address(i)):
				return fmt.Errorf("the underlay of host %s has addresses %v, not %s", name, got.Addrs, address(i))
			}
		}
	}
	return nil
}
