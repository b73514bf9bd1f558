// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ProbeVeth tries to make a veth pair.
func ProbeVeth() error {
	return probeIn("veth", func(n Netns) error {
		_, err := probePair(n)
		return err
	})
}

// ProbeBridge tries to make a bridge with a port.
func ProbeBridge() error {
	return probeIn("bridge", func(n Netns) error {
		port, err := probePair(n)
		if err != nil {
			return err
		}
		err = CreateBridge(Iface{Netns: n, Name: "br0", MAC: probeMAC(3), MTU: 1500})
		if err != nil {
			return lacksLinkKind("bridge", "CONFIG_BRIDGE", err)
		}
		return n.SetMaster(port, "br0")
	})
}

// ProbeMacvlan tries to make a macvlan on a veth.
func ProbeMacvlan() error {
	return probeIn("macvlan", func(n Netns) error {
		parent, err := probePair(n)
		if err != nil {
			return err
		}
		err = CreateMacvlan(Iface{Netns: n, Name: "mv0", MAC: probeMAC(4), MTU: 1500}, n, parent)
		return lacksLinkKind("macvlan", "CONFIG_MACVLAN", err)
	})
}

// ProbeMacvtap tries to make a macvtap on a veth, and to open its file.
func ProbeMacvtap() error {
	return probeIn("macvtap", func(n Netns) error {
		parent, err := probePair(n)
		if err != nil {
			return err
		}
		err = CreateMacvtap(Iface{Netns: n, Name: "mt0", MAC: probeMAC(4), MTU: 1500}, n, parent)
		if err != nil {
			return lacksLinkKind("macvtap", "CONFIG_MACVTAP", err)
		}
		f, err := n.OpenMacvtap("mt0")
		if err != nil {
			return err
		}
		return f.Close()
	})
}

// ProbeTap tries to make a tap interface, which a userspace switch needs.
func ProbeTap() error {
	return probeIn("tap", func(n Netns) error {
		return n.Do(func() error {
			attrs := netlink.NewLinkAttrs()
			attrs.Name = "tap0"
			tap := &netlink.Tuntap{LinkAttrs: attrs, Mode: netlink.TUNTAP_MODE_TAP, Queues: 1}
			if err := netlink.LinkAdd(tap); err != nil {
				return &Unsupported{
					What: "tap interface",
					Why:  "cannot create a tap interface: " + err.Error(),
					Fix:  "modprobe tun; in a container, pass /dev/net/tun",
				}
			}
			for _, fd := range tap.Fds {
				fd.Close()
			}
			return nil
		})
	})
}

// HasNetlinkFamily reports whether the kernel has a generic netlink family; the
// query loads its module, if any.
func HasNetlinkFamily(name string) bool {
	_, err := netlink.GenlFamilyGet(name)
	return err == nil
}

// probePair makes a veth pair in a throw-away namespace.
func probePair(n Netns) (name string, err error) {
	a := Iface{Netns: n, Name: "p0", MAC: probeMAC(1), MTU: 1500}
	b := Iface{Netns: n, Name: "p1", MAC: probeMAC(2), MTU: 1500}
	return a.Name, lacksLinkKind("veth", "CONFIG_VETH", CreateVeth(a, b))
}

func probeMAC(i byte) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, i} }

// lacksLinkKind turns the error for an unknown link kind into a typed one.
func lacksLinkKind(kind, option string, err error) error {
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	return &Unsupported{
		What: kind + " interface",
		Why:  "this kernel has no " + kind,
		Fix:  "needs " + option + "; the kernel of Debian's package linux-image-amd64 has it",
	}
}
