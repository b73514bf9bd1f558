// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host/step"
)

// KindLink is a network interface. It is removed only if it still has the MAC
// address of its creation, so that a namesake is never touched.
const KindLink step.Kind = "link"

// LinkResource is the interface name in ns, created with that MAC address.
func LinkResource(ns Netns, name string, mac net.HardwareAddr) step.Resource {
	return step.Resource{Kind: KindLink, Netns: ns.Path, Name: name, MAC: mac.String()}
}

// Iface gives an interface's name, namespace and fixed properties. MAC and MTU are
// set at creation.
type Iface struct {
	Netns Netns
	Name  string // 1–15 bytes
	MAC   net.HardwareAddr
	MTU   int // bytes of L3 packet
	// Queues is the number of transmit and of receive queues; 0: the kernel's default.
	Queues int
}

func (i Iface) String() string { return i.Name + " in " + i.Netns.String() }

// CreateVeth makes a veth pair with its ends directly in their namespaces.
func CreateVeth(a, b Iface) error {
	nsA, err := a.Netns.open()
	if err != nil {
		return err
	}
	defer nsA.Close()
	nsB, err := b.Netns.open()
	if err != nil {
		return err
	}
	defer nsB.Close()
	attrs := linkAttrs(a)
	attrs.Namespace = netlink.NsFd(nsA)
	veth := &netlink.Veth{
		LinkAttrs:        attrs,
		PeerName:         b.Name,
		PeerHardwareAddr: b.MAC,
		PeerNamespace:    netlink.NsFd(nsB),
		PeerMTU:          uint32(b.MTU),
		PeerNumTxQueues:  uint32(b.Queues),
		PeerNumRxQueues:  uint32(b.Queues),
		PeerTxQLen:       -1, // the kernel's default: 0 would limit a fifo qdisc to one packet
	}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("create veth %s to %s: %w", a, b, err)
	}
	return nil
}

// CreateBridge makes a Linux bridge without spanning tree.
func CreateBridge(i Iface) error {
	return addIn(i, &netlink.Bridge{LinkAttrs: linkAttrs(i)})
}

// CreateHub makes a Linux bridge that passes every frame to all other ports, whatever its
// addresses: it learns nothing, and keeps no list of multicast groups.
func CreateHub(i Iface) error {
	never, off := uint32(0), false
	attrs := linkAttrs(i)
	attrs.MTU = 0 // one that is set at creation changes with the ports
	if err := addIn(i, &netlink.Bridge{LinkAttrs: attrs, AgeingTime: &never, MulticastSnooping: &off}); err != nil {
		return err
	}
	return i.Netns.SetMTU(i.Name, i.MTU)
}

// CreateMacvlan makes a macvlan in bridge mode on the interface parent in parentNs;
// the new interface appears in i.Netns.
func CreateMacvlan(i Iface, parentNs Netns, parent string) error {
	return addOn(i, parentNs, parent, func(attrs netlink.LinkAttrs) netlink.Link {
		return &netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE}
	})
}

// CreateVEPA is CreateMacvlan in VEPA mode: every frame leaves by the parent, and comes back only if
// a switch there reflects it.
func CreateVEPA(i Iface, parentNs Netns, parent string) error {
	return addOn(i, parentNs, parent, func(attrs netlink.LinkAttrs) netlink.Link {
		return &netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_VEPA}
	})
}

// CreateMacvtap is CreateMacvlan for a macvtap, whose packets a file can also
// receive: see OpenMacvtap.
func CreateMacvtap(i Iface, parentNs Netns, parent string) error {
	return addOn(i, parentNs, parent, func(attrs netlink.LinkAttrs) netlink.Link {
		return &netlink.Macvtap{Macvlan: netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE}}
	})
}

// addOn makes an interface on the interface parent of parentNs.
func addOn(i Iface, parentNs Netns, parent string, link func(netlink.LinkAttrs) netlink.Link) error {
	nl, err := parentNs.handle()
	if err != nil {
		return err
	}
	defer nl.Close()
	p, err := nl.LinkByName(parent)
	if err != nil {
		return fmt.Errorf("parent %s of %s in %s: %w", parent, i.Name, parentNs, err)
	}
	target, err := i.Netns.open()
	if err != nil {
		return err
	}
	defer target.Close()
	attrs := linkAttrs(i)
	attrs.ParentIndex = p.Attrs().Index
	attrs.Namespace = netlink.NsFd(target)
	l := link(attrs)
	if err := nl.LinkAdd(l); err != nil {
		return fmt.Errorf("create %s %s on %s: %w", l.Type(), i, parent, err)
	}
	return nil
}

func linkAttrs(i Iface) netlink.LinkAttrs {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.MTU = i.Name, i.MAC, i.MTU
	attrs.NumTxQueues, attrs.NumRxQueues = i.Queues, i.Queues
	return attrs
}

func addIn(i Iface, l netlink.Link) error {
	nl, err := i.Netns.handle()
	if err != nil {
		return err
	}
	defer nl.Close()
	if err := nl.LinkAdd(l); err != nil {
		return fmt.Errorf("create %s %s: %w", l.Type(), i, err)
	}
	return nil
}

// withLink looks the interface up and calls f with it.
func (n Netns) withLink(name string, f func(*netlink.Handle, netlink.Link) error) error {
	nl, err := n.handle()
	if err != nil {
		return err
	}
	defer nl.Close()
	l, err := nl.LinkByName(name)
	if err != nil {
		return fmt.Errorf("interface %s in %s: %w", name, n, err)
	}
	return f(nl, l)
}

// SetUp brings an interface up.
func (n Netns) SetUp(name string) error {
	return n.withLink(name, func(nl *netlink.Handle, l netlink.Link) error { return nl.LinkSetUp(l) })
}

// SetDown brings an interface down.
func (n Netns) SetDown(name string) error {
	return n.withLink(name, func(nl *netlink.Handle, l netlink.Link) error { return nl.LinkSetDown(l) })
}

// RemoveLink deletes an interface; it need not exist.
func (n Netns) RemoveLink(name string) error {
	return ignoreGone(n.withLink(name, func(nl *netlink.Handle, l netlink.Link) error { return nl.LinkDel(l) }))
}

// SetMaster makes the interface a port of the bridge.
func (n Netns) SetMaster(name, bridge string) error {
	return n.withLink(name, func(nl *netlink.Handle, l netlink.Link) error {
		br, err := nl.LinkByName(bridge)
		if err != nil {
			return fmt.Errorf("bridge %s in %s: %w", bridge, n, err)
		}
		return nl.LinkSetMaster(l, br)
	})
}

// SetHairpin lets the bridge send frames back out of the port at which they came in.
func (n Netns) SetHairpin(port string) error {
	return n.withLink(port, func(nl *netlink.Handle, l netlink.Link) error {
		if err := nl.LinkSetHairpin(l, true); err != nil {
			return fmt.Errorf("hairpin mode of bridge port %s in %s: %w", port, n, err)
		}
		return nil
	})
}

// AddAddr gives the interface an address, usable at once (no IPv6 duplicate
// address detection).
func (n Netns) AddAddr(name string, ip netip.Prefix) error {
	addr, err := netlink.ParseAddr(ip.String())
	if err != nil {
		return err
	}
	if ip.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD
	}
	return n.withLink(name, func(nl *netlink.Handle, l netlink.Link) error {
		if err := nl.AddrAdd(l, addr); err != nil {
			return fmt.Errorf("add address %s to %s: %w", ip, name, err)
		}
		return nil
	})
}

// AddNeighbour adds a static neighbour entry, so the kernel does not resolve ip.
func (n Netns) AddNeighbour(name string, ip netip.Addr, mac net.HardwareAddr) error {
	return n.withLink(name, func(nl *netlink.Handle, l netlink.Link) error {
		entry := &netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT, IP: ip.AsSlice(), HardwareAddr: mac}
		if err := nl.NeighSet(entry); err != nil {
			return fmt.Errorf("add neighbour %s to %s: %w", ip, name, err)
		}
		return nil
	})
}

// removeLink deletes the interface if it still has its MAC address.
func removeLink(r step.Resource) error {
	if r.MAC == "" {
		return fmt.Errorf("refusing to remove interface %s: the journal has no MAC address to identify it", r.Name)
	}
	n := Netns{Path: r.Netns}
	if !n.Exists() {
		return nil // its namespace is gone, and so is it
	}
	nl, err := n.handle()
	if err != nil {
		return err
	}
	defer nl.Close()
	l, err := nl.LinkByName(r.Name)
	if err != nil {
		return ignoreGone(err)
	}
	if !strings.EqualFold(l.Attrs().HardwareAddr.String(), r.MAC) {
		return nil
	}
	return ignoreGone(nl.LinkDel(l))
}
