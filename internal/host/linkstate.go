// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host/step"
)

// LinkKindMacvtap is the netlink link type of an interface that OpenMacvtap opens.
const LinkKindMacvtap = "macvtap"

// LinkState is an interface as the kernel reports it.
type LinkState struct {
	Index   int
	Kind    string // netlink link type: "veth", "macvlan", "device"
	MAC     net.HardwareAddr
	MTU     int
	Up      bool // administratively
	Carrier bool // operational: it no longer drops what is sent
	Queues  int  // transmit queues
	// Peer is the index of the other end of a veth pair, in its own namespace. 0: none.
	Peer int
	// Master is the index of the bridge that has it as a port; 0: none.
	Master int
	// Promiscuity counts the requests for promiscuous mode.
	Promiscuity int
	AltNames    []string
	Addrs       []netip.Prefix
}

// Absent is what is wrong with an interface that somebody has deleted.
const Absent = "has no interface any more"

// Differs says what of an interface is not as it was made, with an address or an invalid one;
// "": nothing. Programs that use the interface may add addresses.
func (s *LinkState) Differs(made Iface, ip netip.Prefix) string {
	switch {
	case !bytes.Equal(s.MAC, made.MAC):
		return fmt.Sprintf("has the MAC address %s, not %s", s.MAC, made.MAC)
	case s.MTU != made.MTU:
		return fmt.Sprintf("has an MTU of %d, not %d", s.MTU, made.MTU)
	case !s.Up:
		return "is down"
	case ip.IsValid() && !slices.Contains(s.Addrs, ip):
		return fmt.Sprintf("has lost its address %s", ip)
	}
	return ""
}

// ReadLink reports an interface's state.
func (n Netns) ReadLink(name string) (LinkState, error) {
	var s LinkState
	err := n.withLink(name, func(nl *netlink.Handle, l netlink.Link) error {
		a := l.Attrs()
		s = LinkState{
			Index: a.Index, Kind: l.Type(), MAC: a.HardwareAddr, MTU: a.MTU,
			Up: a.Flags&net.FlagUp != 0, Carrier: carries(a),
			Queues: a.NumTxQueues, Peer: a.ParentIndex, Master: a.MasterIndex, Promiscuity: a.Promisc, AltNames: a.AltNames,
		}
		addrs, err := dump(func() ([]netlink.Addr, error) { return nl.AddrList(l, netlink.FAMILY_ALL) })
		if err != nil {
			return fmt.Errorf("addresses of %s in %s: %w", name, n, err)
		}
		for _, addr := range addrs {
			if ip, ok := netip.AddrFromSlice(addr.IP); ok {
				ones, _ := addr.Mask.Size()
				s.Addrs = append(s.Addrs, netip.PrefixFrom(ip.Unmap(), ones))
			}
		}
		return nil
	})
	return s, err
}

// carries reports whether the interface is operational. Its carrier comes earlier;
// until then it has no queue and drops all packets. The loopback has no such state.
func carries(a *netlink.LinkAttrs) bool {
	return a.OperState == netlink.OperUp || a.Flags&(net.FlagLoopback|net.FlagUp) == net.FlagLoopback|net.FlagUp
}

// WaitCarrier waits until an interface can carry packets, or ctx ends.
func (n Netns) WaitCarrier(ctx context.Context, name string) error {
	for {
		s, err := n.ReadLink(name)
		if err != nil {
			return err
		}
		if s.Carrier {
			return nil
		}
		if err := Sleep(ctx, 2*time.Millisecond); err != nil {
			return fmt.Errorf("interface %s in %s has no carrier: %w", name, n, err)
		}
	}
}

// mtu is the interface's MTU in bytes of L3 packet.
func (n Netns) mtu(name string) (int, error) {
	mtu := 0
	err := n.withLink(name, func(_ *netlink.Handle, l netlink.Link) error {
		mtu = l.Attrs().MTU
		return nil
	})
	return mtu, err
}

// LinkGone reports whether an error says that an interface does not exist, or no longer.
func LinkGone(err error) bool {
	var notFound netlink.LinkNotFoundError
	return errors.As(err, &notFound) || errors.Is(err, unix.ENODEV)
}

// ignoreGone drops the error if the interface does not exist, or no longer.
func ignoreGone(err error) error {
	if LinkGone(err) {
		return nil
	}
	return err
}

// hasLink reports whether the namespace has an interface of that name.
func (n Netns) hasLink(name string) (bool, error) {
	err := n.withLink(name, func(*netlink.Handle, netlink.Link) error { return nil })
	if LinkGone(err) {
		return false, nil
	}
	return err == nil, err
}

// DisableIPv6 stops the namespace from sending router solicitations and multicast
// reports: a switch must add nothing to the traffic.
func (n Netns) DisableIPv6() error {
	return n.Do(func() error {
		for _, which := range []string{"all", "default"} {
			err := os.WriteFile("/proc/sys/net/ipv6/conf/"+which+"/disable_ipv6", []byte("1"), 0)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("disable IPv6 in %s: %w", n, err)
			}
		}
		return nil
	})
}

const (
	KindAddress step.Kind = "address" // an address on an interface that outlives the link
	KindAltName step.Kind = "altname" // an alternative name of such an interface
)

// leastIPv6MTU is what IPv6 needs (RFC 8200, section 5), in bytes.
const leastIPv6MTU = 1280

// NoOwnIPv6 keeps the kernel from giving an interface an IPv6 address, and so from sending
// anything by itself once it is up. It works where sysctls are read-only.
func (n Netns) NoOwnIPv6(name string) error {
	const none = 1 // IN6_ADDR_GEN_MODE_NONE of linux/if_link.h
	return n.withLink(name, func(nl *netlink.Handle, l netlink.Link) error {
		if l.Attrs().MTU < leastIPv6MTU {
			return nil // the kernel has no IPv6 there
		}
		if err := nl.LinkSetIP6AddrGenMode(l, none); err != nil {
			return fmt.Errorf("no IPv6 address on %s in %s: %w", name, n, err)
		}
		return nil
	})
}

// AddressResource is an address on an interface that outlives the link.
func AddressResource(ns Netns, link string, ip netip.Prefix) step.Resource {
	return step.Resource{Kind: KindAddress, Netns: ns.Path, Name: link, Path: ip.String()}
}

// AltNameResource is an alternative name of an interface that outlives the link.
func AltNameResource(ns Netns, link, altName string) step.Resource {
	return step.Resource{Kind: KindAltName, Netns: ns.Path, Name: link, Path: altName}
}

// AddAltName gives the interface another name for look-ups.
func (n Netns) AddAltName(name, altName string) error {
	return n.withLink(name, func(nl *netlink.Handle, l netlink.Link) error {
		if err := nl.LinkAddAltName(l, altName); err != nil {
			return fmt.Errorf("give %s in %s the name %s: %w", name, n, altName, err)
		}
		return nil
	})
}

// ifExists calls f if the namespace and the interface exist.
func ifExists(r step.Resource, f func(*netlink.Handle, netlink.Link) error) error {
	n := Netns{Path: r.Netns}
	if !n.Exists() {
		return nil
	}
	return ignoreGone(n.withLink(r.Name, f))
}

func removeAddress(r step.Resource) error {
	addr, err := netlink.ParseAddr(r.Path)
	if err != nil {
		return err
	}
	return ifExists(r, func(nl *netlink.Handle, l netlink.Link) error {
		if err := nl.AddrDel(l, addr); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return err
		}
		return nil
	})
}

func removeAltName(r step.Resource) error {
	return ifExists(r, func(nl *netlink.Handle, l netlink.Link) error {
		for _, name := range l.Attrs().AltNames {
			if name == r.Path {
				return nl.LinkDelAltName(l, name)
			}
		}
		return nil
	})
}
