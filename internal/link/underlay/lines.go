// SPDX-License-Identifier: Apache-2.0

package underlay

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
)

// uplink is a router's end of its host's eth0.
const uplink = "host"

// router is the namespace next to a host on lines that passes packets on, which no host
// does. It has no address, so it answers nothing but how to reach the other hosts, and that
// only to its own.
func (s Spec) router(name string) host.Netns { return s.netns("router-" + name) }

// buildLines appends the steps that create the hosts and the lines between their routers.
func (s Spec) buildLines(b *Build) {
	for i, name := range s.Names {
		ns, near, far := s.router(name), s.iface(s.netns("host-"+name), device, "host "+name), s.uplink(name)
		b.addHost(s, name)
		b.add("create router of "+name, host.NamespaceResource(ns.Path), func(context.Context) error { return createRouter(ns) })
		b.add("connect "+name+" to its router", host.LinkResource(near.Netns, near.Name, near.MAC), func(context.Context) error {
			return connectRouter(near, far, i)
		})
	}
	for i, l := range s.Lines {
		ends := [2]host.Iface{s.lineEnd(i, l.Between[0]), s.lineEnd(i, l.Between[1])}
		what := fmt.Sprintf("line from %s to %s", l.Between[0], l.Between[1])
		b.add("create "+what, host.LinkResource(ends[0].Netns, ends[0].Name, ends[0].MAC), func(context.Context) error { return join(ends) })
		q := s.shaper(l.Rate, l.SimulatedDelay())
		b.shape("the "+what, ends[0], q)
		b.shape(fmt.Sprintf("the line from %s to %s", l.Between[1], l.Between[0]), ends[1], q)
	}
	for from := range s.Names {
		b.Steps = append(b.Steps, step.Step{Name: "underlay: route from " + s.Names[from], Do: func(context.Context) error { return s.route(from) }})
	}
	b.Steps = append(b.Steps, step.Step{Name: "underlay: read back", Do: s.readLinesBack})
}

func (s Spec) uplink(name string) host.Iface { return s.iface(s.router(name), uplink, "router "+name) }

// lineEnd is the end of line i at the router of a host.
func (s Spec) lineEnd(i int, name string) host.Iface {
	return s.iface(s.router(name), fmt.Sprintf("line%d", i+1), fmt.Sprintf("line %d at %s", i+1, name))
}

func createRouter(ns host.Netns) error {
	if err := createNetns(ns); err != nil {
		return err
	}
	return ns.RouteIPv4()
}

// connectRouter joins host i to its router, which answers for the other hosts: hosts and
// tunnels find each other as over one switch.
func connectRouter(near, far host.Iface, i int) error {
	if err := join([2]host.Iface{near, far}); err != nil {
		return err
	}
	if err := near.Netns.AddAddr(near.Name, address(i)); err != nil {
		return err
	}
	return far.Netns.AnswerForOthers(far.Name)
}

// join creates a pair of interfaces that are up.
func join(ends [2]host.Iface) error {
	if err := host.CreateVeth(ends[0], ends[1]); err != nil {
		return err
	}
	for _, end := range ends {
		if err := end.Netns.SetUp(end.Name); err != nil {
			return err
		}
	}
	return nil
}

// route gives a host's router its routes: to the host itself, and to each other host by
// the line that is planned.
func (s Spec) route(from int) error {
	ns := s.router(s.Names[from])
	for to, line := range s.First[from] {
		hop := host.Hop{Dev: uplink}
		switch {
		case to == from:
		case line < 0:
			continue
		default:
			l := s.Lines[line]
			next := l.Between[0]
			if next == s.Names[from] {
				next = l.Between[1]
			}
			end := s.lineEnd(line, next)
			hop = host.Hop{Dev: end.Name, MAC: end.MAC, Via: address(slices.Index(s.Names, next)).Addr()}
		}
		if err := ns.AddRoute(addresses(to), hop); err != nil {
			return err
		}
	}
	return nil
}

// addresses are all of host i: its own and its tunnels'.
func addresses(i int) netip.Prefix {
	const bits = 32 - 13 // part is 2^13
	return netip.PrefixFrom(address(i).Addr(), bits).Masked()
}

// readLinesBack compares both ends of each line, and the routes, with the spec.
func (s Spec) readLinesBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, carrierTimeout)
	defer cancel()
	for i, name := range s.Names {
		if err := s.readHostBack(ctx, i); err != nil {
			return err
		}
		ends := []host.Iface{s.uplink(name)}
		for j, l := range s.Lines {
			if slices.Contains(l.Between, name) {
				ends = append(ends, s.lineEnd(j, name))
			}
		}
		for _, end := range ends {
			if err := s.readEnd(ctx, end); err != nil {
				return err
			}
		}
		if err := s.checkRoutes(i); err != nil {
			return err
		}
	}
	return nil
}

func (s Spec) checkRoutes(from int) error {
	for to, line := range s.First[from] {
		if line < 0 {
			continue
		}
		got, err := s.router(s.Names[from]).ReadRoute(address(to).Addr())
		if want := fmt.Sprintf("line%d", line+1); err == nil && got != want {
			err = fmt.Errorf("packets from host %s to %s leave by %s, not by %s", s.Names[from], s.Names[to], got, want)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
