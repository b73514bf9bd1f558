// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
)

// InUse says why an interface of this namespace must keep its driver; empty if it
// need not. Link-local addresses do not count: the kernel gives them to any interface
// that is up.
func (n Netns) InUse(name string) (string, error) {
	nl, err := n.handle()
	if err != nil {
		return "", err
	}
	defer nl.Close()
	link, err := nl.LinkByName(name)
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", name, err)
	}
	routes, err := dump(func() ([]netlink.Route, error) { return nl.RouteList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return "", fmt.Errorf("list routes of %s: %w", name, err)
	}
	for _, r := range routes {
		if r.Dst == nil || r.Dst.IP.IsUnspecified() {
			return "it has the default route", nil
		}
	}
	addresses, err := dump(func() ([]netlink.Addr, error) { return nl.AddrList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return "", fmt.Errorf("list addresses of %s: %w", name, err)
	}
	for _, a := range addresses {
		if !a.IP.IsLinkLocalUnicast() {
			return "it has the address " + a.IPNet.String(), nil
		}
	}
	for _, r := range routes {
		if !r.Dst.IP.IsLinkLocalUnicast() && !r.Dst.IP.IsMulticast() {
			return "it has a route to " + r.Dst.String(), nil
		}
	}
	return connected(nl, link)
}

// connected names the bridge, bond or interface that uses the link.
func connected(nl *netlink.Handle, link netlink.Link) (string, error) {
	all, err := dump(nl.LinkList)
	if err != nil {
		return "", fmt.Errorf("list host interfaces: %w", err)
	}
	own := link.Attrs()
	for _, l := range all {
		switch a := l.Attrs(); {
		case a.Index == own.MasterIndex:
			return "it is part of " + a.Name, nil
		case a.ParentIndex == own.Index && a.Index != own.Index:
			return "the interface " + a.Name + " is on top of it", nil
		}
	}
	if own.Flags&net.FlagUp != 0 {
		return "it is up; if nothing needs it, run `ip link set " + own.Name + " down`", nil
	}
	return "", nil
}
