// SPDX-License-Identifier: Apache-2.0

// Package loopback joins two ports of one function by its loopback interface.
// It is a baseline for comparison, never chosen automatically.
package loopback

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Name is the transport's name in a chain file.
const Name = "loopback"

// lo is the interface; it exists in every network namespace.
const lo = "lo"

// New returns the driver.
func New() transport.Driver { return transport.Define(Name, caps, transport.Try(probe), build) }

var caps = transport.Interfaces(inventory.Caps{
	MinEnds:    2,
	MaxEnds:    2,
	SameNetns:  true,
	MaxMTU:     65536,
	Rank:       -1,
	KernelPath: "socket, loopback transmit, backlog of the same CPU, socket",
	Note:       "a baseline: the ports are alternative names and /32 or /128 addresses of lo, which keeps its MTU of 65536 and has no MAC",
})

func probe() error {
	err := host.InThrowawayNetns(func(ns host.Netns) error { return ns.AddAltName(lo, "probe0") })
	return lacksNames(err)
}

// lacksNames turns the error of a kernel without alternative names into a typed one.
func lacksNames(err error) error {
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	return &host.Unsupported{What: Name, Why: "interfaces cannot have alternative names: " + err.Error(), Fix: "use Linux 5.5 or later", Cause: err}
}

func build(s transport.Spec) (*transport.Build, error) {
	ns := s.Ends[0].Netns
	build := transport.NewBuild(step.Step{
		Name: s.StepName(Name, "check lo"),
		Do:   func(context.Context) error { return check(s, ns) },
	})
	for i, e := range s.Ends {
		build.Steps = append(build.Steps, nameEnd(s, i, e))
		if e.IP.IsValid() {
			build.Steps = append(build.Steps, addressEnd(s, i, e))
		}
	}
	if s.Shape != nil {
		build.Steps = append(build.Steps, step.Step{
			Name:  s.StepName(Name, "shape lo"),
			Makes: []step.Resource{host.QdiscResource(ns, lo)},
			Do:    func(context.Context) error { return build.Shape(ns, lo, lo, *s.Shape) },
		})
	}
	build.Steps = append(build.Steps, step.Step{
		Name: s.StepName(Name, "read back"),
		Do:   func(context.Context) error { return readBack(s, ns) },
	})
	return build, nil
}

// single is the address as a host prefix. With the whole prefix, lo would
// answer for the subnet, and removing one address would remove its neighbours.
func single(ip netip.Prefix) netip.Prefix {
	return netip.PrefixFrom(ip.Addr(), ip.Addr().BitLen())
}

// check rejects addresses and names that lo already has, before any step
// declares them: declared resources are removed later.
func check(s transport.Spec, ns host.Netns) error {
	state, err := ns.ReadLink(lo)
	if err != nil {
		return err
	}
	if !state.Up {
		return fmt.Errorf("lo in %s is down: ip link set lo up", ns)
	}
	for _, e := range s.Ends {
		if e.IP.IsValid() && slices.Contains(state.Addrs, single(e.IP)) {
			return fmt.Errorf("lo in %s already has the address %s: give port %s another", ns, e.IP.Addr(), e.Name)
		}
		if other, err := ns.ReadLink(e.Name); err == nil {
			return fmt.Errorf("%s already has an interface %s (index %d): give the port another name", ns, e.Name, other.Index)
		}
	}
	if s.Shape == nil {
		return nil
	}
	qdisc, err := ns.ReadQdisc(lo)
	if err == nil && qdisc.Kind != "noqueue" {
		err = fmt.Errorf("lo in %s already has a qdisc (%s): only one loopback link of a function can be shaped", ns, qdisc.Text)
	}
	return err
}

func nameEnd(s transport.Spec, i int, e transport.End) step.Step {
	return step.Step{
		Name:  s.StepName(Name, fmt.Sprintf("name end %d %s", i+1, e.Name)),
		Makes: []step.Resource{host.AltNameResource(e.Netns, lo, e.Name)},
		Do:    func(context.Context) error { return e.Netns.AddAltName(lo, e.Name) },
	}
}

func addressEnd(s transport.Spec, i int, e transport.End) step.Step {
	ip := single(e.IP)
	return step.Step{
		Name:  s.StepName(Name, fmt.Sprintf("address end %d %s", i+1, e.Name)),
		Makes: []step.Resource{host.AddressResource(e.Netns, lo, ip)},
		Do:    func(context.Context) error { return e.Netns.AddAddr(lo, ip) },
	}
}

func readBack(s transport.Spec, ns host.Netns) error {
	state, err := ns.ReadLink(lo)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range s.Ends {
		if !slices.Contains(state.AltNames, e.Name) {
			errs = append(errs, fmt.Errorf("lo does not have the name %s", e.Name))
		}
		if e.IP.IsValid() && !slices.Contains(state.Addrs, single(e.IP)) {
			errs = append(errs, fmt.Errorf("lo does not have the address %s", e.IP.Addr()))
		}
	}
	return errors.Join(errs...)
}
