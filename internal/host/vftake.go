// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host/step"
)

// vfPatience bounds the wait for a driver to reset a virtual function, and for the
// kernel to return one from a namespace that is gone.
const vfPatience = 10 * time.Second

// TakeVFs makes ports of free virtual functions, all of one network card. pf is the
// card's interface, or empty for any card with enough of them; TakeVFs returns it.
// Each port has the card's spoof check on and trust off: its function cannot use
// another source address, nor be promiscuous. The ports are down.
func TakeVFs(ctx context.Context, pf string, ports []Iface) (string, error) {
	p, err := hostVFs()
	if err != nil {
		return "", err
	}
	unlock, err := p.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	mtu := 0
	for _, port := range ports {
		mtu = max(mtu, port.MTU)
	}
	card, vfs, err := p.choose(pf, len(ports), mtu)
	if err != nil {
		return "", err
	}
	for i, port := range ports {
		if err := p.take(ctx, card.name, vfs[i], port); err != nil {
			return "", fmt.Errorf("make a port of vf %d of %s, %s: %w", vfs[i].number, card.name, vfs[i].link, err)
		}
	}
	return card.name, nil
}

func (p vfPool) take(ctx context.Context, pf string, vf virtualFunction, port Iface) error {
	handle, err := HostNetns.handle()
	if err != nil {
		return err
	}
	defer handle.Close()
	card, link, err := cardAndVF(handle, pf, vf.link)
	if err != nil {
		return err
	}
	if queues := link.Attrs().NumTxQueues; port.Queues > queues {
		return fmt.Errorf("it has %d queues, but port %s needs %d: lower the port's queues", queues, port.Name, port.Queues)
	}
	claim, err := p.describe(card, link, vf, port)
	if err != nil {
		return err
	}
	if err := p.write(claim); err != nil {
		return fmt.Errorf("note it: %w", err)
	}
	if err := address(ctx, handle, card, vf.number, link, port.MAC, port.MAC); err != nil {
		return err
	}
	if err := guard(handle, card, vf.number, true, false); err != nil {
		return err
	}
	if err := handle.LinkSetMTU(link, port.MTU); err != nil {
		return fmt.Errorf("set MTU %d: %w", port.MTU, err)
	}
	return moveLink(HostNetns, link.Attrs().Index, port.Netns, port.Name)
}

func cardAndVF(handle *netlink.Handle, pf, vf string) (card, link netlink.Link, err error) {
	if card, err = handle.LinkByName(pf); err != nil {
		return nil, nil, fmt.Errorf("interface %s: %w", pf, err)
	}
	if link, err = handle.LinkByName(vf); err != nil {
		return nil, nil, fmt.Errorf("interface %s: %w", vf, err)
	}
	return card, link, nil
}

// describe is a port's claim on a function as it is now.
func (p vfPool) describe(card, link netlink.Link, vf virtualFunction, port Iface) (vfClaim, error) {
	a := link.Attrs()
	claim := vfClaim{
		Boot: p.boot, Address: vf.address, PF: card.Attrs().Name, VF: vf.number,
		Netns: port.Netns.Path, Port: port.Name, PortMAC: port.MAC.String(),
		Link: a.Name, MAC: a.HardwareAddr.String(), MTU: a.MTU, Offloads: map[string]bool{},
	}
	err := HostNetns.withEthtool(a.Name, func(e *ethtool) error {
		states, err := e.features()
		for name, state := range states {
			if state.Available {
				claim.Offloads[name] = state.Active
			}
		}
		return err
	})
	if err != nil {
		return claim, err
	}
	for _, info := range card.Attrs().Vfs {
		if info.ID == vf.number {
			claim.AdminMAC, claim.Spoof, claim.Trust = info.Mac.String(), info.Spoofchk, info.Trust == 1
			return claim, nil
		}
	}
	return claim, fmt.Errorf("the driver of %s does not report its virtual function %d", claim.PF, vf.number)
}

// address sets a function's address, and has its card enforce the address own,
// unless that is zero. A function cannot change an enforced address, so enforcement
// is lifted first.
func address(ctx context.Context, handle *netlink.Handle, card netlink.Link, vf int, link netlink.Link, mac, own net.HardwareAddr) error {
	none := make(net.HardwareAddr, len(mac))
	givenUp := handle.LinkSetVfHardwareAddr(card, vf, none)
	if givenUp != nil { // the driver cannot lift it, and enforces the new address at once
		givenUp = errors.Join(givenUp, handle.LinkSetVfHardwareAddr(card, vf, mac))
	}
	if err := setMAC(ctx, handle, link, mac); err != nil {
		return errors.Join(err, givenUp)
	}
	if bytes.Equal(own, none) {
		return nil
	}
	if err := handle.LinkSetVfHardwareAddr(card, vf, own); err != nil {
		return fmt.Errorf("make %s enforce its address: %w", card.Attrs().Name, err)
	}
	return nil
}

// guard switches the card's check of a function's source address, and its trust in
// the function.
func guard(handle *netlink.Handle, card netlink.Link, vf int, check, trust bool) error {
	if err := handle.LinkSetVfSpoofchk(card, vf, check); err != nil {
		return fmt.Errorf("switch its source address check %s: %w", onOff(check), err)
	}
	// A card whose driver lacks trust gives none.
	if err := handle.LinkSetVfTrust(card, vf, trust); err != nil && (trust || !errors.Is(err, unix.EOPNOTSUPP)) {
		return fmt.Errorf("switch trust in it %s: %w", onOff(trust), err)
	}
	return nil
}

// setMAC sets the address of a function's interface. A driver may refuse while it
// resets the function. Some cards reset it when the enforced address changes.
func setMAC(ctx context.Context, handle *netlink.Handle, link netlink.Link, mac net.HardwareAddr) error {
	ctx, cancel := context.WithTimeout(ctx, vfPatience)
	defer cancel()
	for {
		now, err := handle.LinkByIndex(link.Attrs().Index)
		if err == nil && bytes.Equal(now.Attrs().HardwareAddr, mac) {
			return nil
		}
		if err == nil {
			err = handle.LinkSetHardwareAddr(link, mac)
		}
		if Sleep(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("set its address %s: %w", mac, errors.Join(err, ctx.Err()))
		}
	}
}

// moveLink moves an interface to another namespace, under a name that may be in use
// in its old namespace.
func moveLink(from Netns, index int, to Netns, name string) error {
	target, err := to.open()
	if err != nil {
		return err
	}
	defer target.Close()
	err = from.Do(func() error {
		message := nl.NewIfInfomsg(unix.AF_UNSPEC)
		message.Index = int32(index)
		request := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
		request.AddData(message)
		request.AddData(nl.NewRtAttr(unix.IFLA_NET_NS_FD, nl.Uint32Attr(uint32(target))))
		request.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(name)))
		_, err := request.Execute(unix.NETLINK_ROUTE, 0)
		return err
	})
	if err != nil {
		return fmt.Errorf("move it to %s as %s: %w", to, name, err)
	}
	return nil
}

// giveBackVF returns the function that became the port.
func giveBackVF(ctx context.Context, r step.Resource) error {
	p, err := hostVFs()
	if err != nil {
		return err
	}
	if _, err := os.Stat(p.claims); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	unlock, err := p.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	claims, err := p.claimed()
	if err != nil {
		return err
	}
	for _, claim := range claims {
		if claim.is(r) {
			return p.giveBack(ctx, claim)
		}
	}
	return nil // it was never taken, or is back
}

func (p vfPool) giveBack(ctx context.Context, c vfClaim) error {
	ctx, cancel := context.WithTimeout(ctx, vfPatience)
	defer cancel()
	ours, err := retrieve(c)
	if err != nil {
		return err
	}
	for {
		link, there := interfaceAt(p.sysfs, c.Address)
		if !there {
			return p.drop(c.Address) // the card's functions have been removed
		}
		if link != "" {
			if err := restore(ctx, link, c, ours); err != nil {
				return fmt.Errorf("give vf %d of %s back as %s: %w", c.VF, c.PF, c.Link, err)
			}
			return p.drop(c.Address)
		}
		if Sleep(ctx, 5*time.Millisecond) != nil {
			return fmt.Errorf("vf %d of %s (%s) does not come back: a process holds the network namespace it is in; end that process, then dray gc", c.VF, c.PF, c.Address)
		}
	}
}

// retrieve takes a function out of its port's namespace. If that is gone, the
// kernel does it. ours says that it was there, so no other user can have taken it.
func retrieve(c vfClaim) (ours bool, err error) {
	ns := Netns{Path: c.Netns}
	if !ns.Exists() {
		return false, nil
	}
	handle, err := ns.handle()
	if err != nil {
		return false, err
	}
	defer handle.Close()
	links, err := dump(handle.LinkList)
	if err != nil {
		return false, fmt.Errorf("list interfaces in %s: %w", ns, err)
	}
	for _, l := range links {
		a := l.Attrs()
		if a.ParentDevBus != "pci" || a.ParentDev != c.Address {
			continue
		}
		if err := handle.LinkSetDown(l); err != nil {
			return false, err
		}
		// If another interface has its old name, it gets a new one.
		err := moveLink(ns, a.Index, HostNetns, c.Link)
		if errors.Is(err, unix.EEXIST) {
			err = moveLink(ns, a.Index, HostNetns, "vf%d")
		}
		return true, ignoreGone(err) // it had moved, but was not renamed
	}
	return false, nil
}

// restore returns a function on the host to its state before it became a port. If
// it is no longer ours, an unknown address is another user's.
func restore(ctx context.Context, name string, c vfClaim, ours bool) error {
	handle, err := HostNetns.handle()
	if err != nil {
		return err
	}
	defer handle.Close()
	card, link, err := cardAndVF(handle, c.PF, name)
	if err != nil {
		return err
	}
	now := link.Attrs().HardwareAddr.String()
	if !ours && now != c.PortMAC && now != c.MAC {
		return nil // another user has given it an address since
	}
	mac, err := net.ParseMAC(c.MAC)
	if err != nil {
		return err
	}
	admin, err := net.ParseMAC(c.AdminMAC)
	if err != nil {
		return err
	}
	if err := handle.LinkSetDown(link); err != nil {
		return err
	}
	if err := address(ctx, handle, card, c.VF, link, mac, admin); err != nil {
		return err
	}
	// If the card has no such check, taking failed here: there is nothing to restore.
	if err := guard(handle, card, c.VF, c.Spoof, c.Trust); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	if err := handle.LinkSetMTU(link, c.MTU); err != nil {
		return fmt.Errorf("set MTU %d: %w", c.MTU, err)
	}
	if err := HostNetns.withEthtool(name, func(e *ethtool) error { return e.change(c.Offloads) }); err != nil {
		return err
	}
	if name == c.Link {
		return nil
	}
	if err := handle.LinkSetName(link, c.Link); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("rename it to %s: %w", c.Link, err)
	}
	return nil
}
