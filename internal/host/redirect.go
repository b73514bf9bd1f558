// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
)

// Interfaces lists the names of the namespace's interfaces without the loopback, in
// creation order.
func (n Netns) Interfaces() ([]string, error) {
	nl, err := n.handle()
	if err != nil {
		return nil, err
	}
	defer nl.Close()
	links, err := dump(nl.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list interfaces in %s: %w", n, err)
	}
	var names []string
	for _, l := range links {
		if a := l.Attrs(); a.EncapType == "ether" {
			names = append(names, a.Name)
		}
	}
	return names, nil
}

// Move moves an interface to another namespace, if it is down without an address.
func (n Netns) Move(name string, to Netns) error {
	f, err := os.Open(to.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	return n.withLink(name, func(nl *netlink.Handle, l netlink.Link) error { return nl.LinkSetNsFd(l, int(f.Fd())) })
}

// SetMTU sets an interface's MTU, in bytes of L3 packet.
func (n Netns) SetMTU(name string, mtu int) error {
	return n.withLink(name, func(nl *netlink.Handle, l netlink.Link) error { return nl.LinkSetMTU(l, mtu) })
}

// Join makes two interfaces of the namespace one wire: each sends all that the
// other receives, bypassing the network stack. It ends any earlier join of either.
// Root qdiscs stay, and act on egress.
func (n Netns) Join(a, b string) error {
	for _, ends := range [][2]string{{a, b}, {b, a}} {
		if err := n.redirect(ends[0], ends[1]); err != nil {
			return fmt.Errorf("join %s and %s in %s: %w", a, b, n, err)
		}
	}
	return nil
}

// redirect sends everything that from receives out of to. Even small kernels have
// the u32 classifier.
func (n Netns) redirect(from, to string) error {
	_ = n.tc("qdisc", "del", "dev", from, "clsact") // of an earlier peer, if any
	err := n.tc("qdisc", "replace", "dev", from, "clsact")
	if err == nil {
		err = n.tc("filter", "add", "dev", from, "ingress", "protocol", "all", "prio", "1", "u32", "match", "u32", "0", "0",
			"action", "mirred", "egress", "redirect", "dev", to)
	}
	return lacksRedirect(err)
}

// lacksRedirect turns the error for an unknown qdisc, classifier or action into a typed one.
func lacksRedirect(err error) error {
	var failed *HelperError
	if !errors.As(err, &failed) || !unknownKind(failed.Said) {
		return err
	}
	return &Unsupported{
		What: "ports of virtual machines", Why: failed.why(), Cause: err,
		Fix: "use a kernel with CONFIG_NET_SCH_INGRESS, CONFIG_NET_CLS_U32 and CONFIG_NET_ACT_MIRRED; Debian's package linux-image-amd64 has them",
	}
}
