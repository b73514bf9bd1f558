// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Vxlan is one end of a VXLAN tunnel (RFC 7348).
type Vxlan struct {
	Iface
	// Underlay is the namespace whose network carries the tunnel, and Device its
	// interface there; Iface may be in another.
	Underlay Netns
	Device   string
	Local    netip.Addr // an address of Device
	VNI      int        // 1 to 2^24 − 1
	Port     int        // UDP, at both ends
}

// CreateVxlan makes the end of a tunnel. It does not learn addresses: AddForwarding
// sets them.
func CreateVxlan(v Vxlan) error {
	nl, err := v.Underlay.handle()
	if err != nil {
		return err
	}
	defer nl.Close()
	dev, err := nl.LinkByName(v.Device)
	if err != nil {
		return fmt.Errorf("interface %s in %s: %w", v.Device, v.Underlay, err)
	}
	target, err := v.Netns.open()
	if err != nil {
		return err
	}
	defer target.Close()
	attrs := linkAttrs(v.Iface)
	attrs.Namespace = netlink.NsFd(target)
	err = nl.LinkAdd(&netlink.Vxlan{
		LinkAttrs: attrs, VxlanId: v.VNI, VtepDevIndex: dev.Attrs().Index,
		SrcAddr: v.Local.AsSlice(), Port: v.Port, NoAge: true,
	})
	if err != nil {
		return fmt.Errorf("create vxlan %s over %s in %s: %w", v.Iface, v.Device, v.Underlay, err)
	}
	return nil
}

// AddForwarding makes the end of a tunnel send packets for mac to another end. The
// zero MAC stands for unknown and group addresses: those packets go to each end
// that was added for it.
func (n Netns) AddForwarding(name string, mac net.HardwareAddr, to netip.Addr) error {
	return n.withLink(name, func(nl *netlink.Handle, l netlink.Link) error {
		entry := &netlink.Neigh{
			LinkIndex: l.Attrs().Index, Family: unix.AF_BRIDGE, State: netlink.NUD_PERMANENT | netlink.NUD_NOARP,
			Flags: netlink.NTF_SELF, IP: to.AsSlice(), HardwareAddr: mac,
		}
		if err := nl.NeighAppend(entry); err != nil {
			return fmt.Errorf("forward %s to %s on %s in %s: %w", mac, to, name, n, err)
		}
		return nil
	})
}

// ReadVNI is the number of a tunnel's end.
func (n Netns) ReadVNI(name string) (vni int, err error) {
	err = n.withLink(name, func(_ *netlink.Handle, l netlink.Link) error {
		v, ok := l.(*netlink.Vxlan)
		if !ok {
			return fmt.Errorf("%s in %s is a %s, not a tunnel", name, n, l.Type())
		}
		vni = v.VxlanId
		return nil
	})
	return vni, err
}

// TunnelEnd is where the other end of a tunnel receives.
type TunnelEnd struct {
	Addr netip.Addr // of the underlay
	VNI  int        // 1 to 2^24 − 1
}

// Forward makes an end of a tunnel send all packets to one other end: those for mac,
// and those for unknown and group addresses.
func (n Netns) Forward(name string, mac net.HardwareAddr, to TunnelEnd) error {
	return n.withLink(name, func(nl *netlink.Handle, l netlink.Link) error {
		old, err := dump(func() ([]netlink.Neigh, error) { return nl.NeighList(l.Attrs().Index, unix.AF_BRIDGE) })
		if err != nil {
			return fmt.Errorf("forwarding table of %s in %s: %w", name, n, err)
		}
		entry := netlink.Neigh{
			LinkIndex: l.Attrs().Index, Family: unix.AF_BRIDGE, State: netlink.NUD_PERMANENT | netlink.NUD_NOARP,
			Flags: netlink.NTF_SELF, IP: to.Addr.AsSlice(), HardwareAddr: mac, VNI: to.VNI,
		}
		if err := nl.NeighSet(&entry); err != nil {
			return fmt.Errorf("forward %s to %s on %s in %s: %w", mac, to.Addr, name, n, err)
		}
		entry.HardwareAddr = make(net.HardwareAddr, 6)
		if err := replaceFlooding(nl, l, old, &entry); err != nil {
			return fmt.Errorf("forward broadcasts to %s on %s in %s: %w", to.Addr, name, n, err)
		}
		return nil
	})
}

// replaceFlooding makes the entry the only one for unknown and group addresses. Unlike
// entries for one address, the kernel cannot replace them in one step.
func replaceFlooding(nl *netlink.Handle, l netlink.Link, old []netlink.Neigh, entry *netlink.Neigh) error {
	own := 0 // the kernel does not name a VNI that is the tunnel's own
	if v, ok := l.(*netlink.Vxlan); ok {
		own = v.VxlanId
	}
	var others []*netlink.Neigh
	there := false
	for i := range old {
		e := &old[i]
		switch {
		case !bytes.Equal(e.HardwareAddr, entry.HardwareAddr):
		case e.IP.Equal(entry.IP) && cmp.Or(e.VNI, own) == entry.VNI:
			there = true
		default:
			e.LinkIndex, e.Family, e.Flags = entry.LinkIndex, unix.AF_BRIDGE, netlink.NTF_SELF
			others = append(others, e)
		}
	}
	if !there {
		if err := nl.NeighAppend(entry); err != nil {
			return err
		}
	}
	for _, e := range others {
		if err := nl.NeighDel(e); err != nil {
			return err
		}
	}
	return nil
}

// ReadForwarding lists a tunnel end's destinations by address.
func (n Netns) ReadForwarding(name string) (map[string][]netip.Addr, error) {
	table := map[string][]netip.Addr{}
	err := n.withLink(name, func(nl *netlink.Handle, l netlink.Link) error {
		entries, err := dump(func() ([]netlink.Neigh, error) { return nl.NeighList(l.Attrs().Index, unix.AF_BRIDGE) })
		if err != nil {
			return fmt.Errorf("forwarding table of %s in %s: %w", name, n, err)
		}
		for _, e := range entries {
			if to, ok := netip.AddrFromSlice(e.IP); ok {
				table[e.HardwareAddr.String()] = append(table[e.HardwareAddr.String()], to.Unmap())
			}
		}
		return nil
	})
	return table, err
}

// ProbeVxlan tries to make the end of a tunnel.
func ProbeVxlan() error {
	return probeIn("vxlan", func(n Netns) error {
		device, err := probePair(n)
		if err != nil {
			return err
		}
		err = CreateVxlan(Vxlan{
			Iface:    Iface{Netns: n, Name: "vx0", MAC: probeMAC(5), MTU: 1400},
			Underlay: n, Device: device, Local: netip.MustParseAddr("192.0.2.1"), VNI: 1, Port: 8472,
		})
		return lacksLinkKind("vxlan", "CONFIG_VXLAN", err)
	})
}
