// SPDX-License-Identifier: Apache-2.0

// Package underlay creates the simulated hosts of a chain, one network
// namespace each. A switch in its own namespace joins them, over lines with a
// stated rate and delay; or lines do, each with a rate and delay of its own,
// between routers.
package underlay

import (
	"context"
	"fmt"
	"net/netip"
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
	// forward. The kernel takes up to a second; this process may get no CPU for longer.
	carrierTimeout = 30 * time.Second
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
	// First is the index of the line that packets take first, by the host that
	// sends them and the host that they are for; -1: none leads there. Only if
	// the hosts have lines.
	First [][]int
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
	h := transport.Host{Name: name, Netns: s.netns("host-" + name), Device: device, Addr: address(i)}
	if s.Lined() {
		h.Gateway = s.uplink(name).MAC
	}
	return h, nil
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
	b.add("create directory", host.DirResource(s.Dir), func(context.Context) error { return host.MakeDirs(s.Dir, 0o711) })
	if s.Lined() {
		s.buildLines(b)
	} else {
		s.buildSwitch(b)
	}
	return b
}

// buildSwitch appends the steps that create the switch, and the hosts around it.
func (s Spec) buildSwitch(b *Build) {
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
		near, addr := s.iface(s.netns("host-"+name), device, "host "+name), address(i)
		far := s.iface(sw, fmt.Sprintf("p%d", i+1), "line "+name)
		b.addHost(s, name)
		b.add("create line of "+name, host.LinkResource(near.Netns, near.Name, near.MAC), func(context.Context) error { return connect(near, far, addr) })
		b.shape("the line from "+name, near, s.shaper(s.Underlay.Rate, 0))
		b.shape("the line to "+name, far, s.shaper(s.Underlay.Rate, time.Duration(s.Underlay.Delay)))
	}
	b.Steps = append(b.Steps, step.Step{Name: "underlay: read back", Do: s.readBack})
}

// addHost appends the step that creates a host.
func (b *Build) addHost(s Spec, name string) {
	ns := s.netns("host-" + name)
	b.add("create host "+name, host.NamespaceResource(ns.Path), func(context.Context) error { return createNetns(ns) })
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

// readBack compares both ends of each host's line with the spec, and waits until
// the switch forwards.
func (s Spec) readBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, carrierTimeout)
	defer cancel()
	sw := s.netns("switch")
	for i := range s.Names {
		if err := s.readHostBack(ctx, i); err != nil {
			return err
		}
		far := s.iface(sw, fmt.Sprintf("p%d", i+1), "line "+s.Names[i])
		if err := sw.WaitForwarding(ctx, far.Name); err != nil {
			return err
		}
		if err := s.readEnd(ctx, far); err != nil {
			return err
		}
	}
	return nil
}

// readHostBack compares the interface of host i with the spec, and waits for its
// carrier.
func (s Spec) readHostBack(ctx context.Context, i int) error {
	end := s.iface(s.netns("host-"+s.Names[i]), device, "host "+s.Names[i])
	if err := s.readEnd(ctx, end); err != nil {
		return err
	}
	got, err := end.Netns.ReadLink(end.Name)
	if err == nil && !slices.Contains(got.Addrs, address(i)) {
		err = fmt.Errorf("the underlay of host %s has addresses %v, not %s", s.Names[i], got.Addrs, address(i))
	}
	return err
}

// readEnd compares an end of a line with the spec, and waits for its carrier.
func (s Spec) readEnd(ctx context.Context, end host.Iface) error {
	if err := end.Netns.WaitCarrier(ctx, end.Name); err != nil {
		return err
	}
	got, err := end.Netns.ReadLink(end.Name)
	if err == nil && got.MTU != end.MTU {
		err = fmt.Errorf("%s, an end of the underlay, has MTU %d, not %d", end, got.MTU, end.MTU)
	}
	return err
}
