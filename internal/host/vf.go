// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
)

// hostLink is the state of a host interface that decides if a port may use it.
type hostLink struct {
	up        bool // administratively
	carrier   bool
	mtu       int
	master    bool // it is a port of a bridge or a bond
	mac       string
	addresses []netip.Addr
	network   string // the bridge or bond that it is a port of, or else its own name
}

// hostLinks are the interfaces of the host's namespace, by name.
func hostLinks() (map[string]hostLink, error) {
	nl, err := HostNetns.handle()
	if err != nil {
		return nil, err
	}
	defer nl.Close()
	links, err := dump(nl.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list host interfaces: %w", err)
	}
	addresses, err := dump(func() ([]netlink.Addr, error) { return nl.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list host addresses: %w", err)
	}
	byIndex, of := map[int]netlink.Link{}, map[int][]netip.Addr{}
	for _, l := range links {
		byIndex[l.Attrs().Index] = l
	}
	for _, a := range addresses {
		if ip, ok := netip.AddrFromSlice(a.IP); ok {
			of[a.LinkIndex] = append(of[a.LinkIndex], ip.Unmap())
		}
	}
	all := map[string]hostLink{}
	for _, l := range links {
		a := l.Attrs()
		all[a.Name] = hostLink{
			up: a.Flags&net.FlagUp != 0, carrier: carries(a), mtu: a.MTU, master: a.MasterIndex != 0,
			mac: a.HardwareAddr.String(), addresses: of[a.Index], network: networkOf(l, byIndex),
		}
	}
	return all, nil
}

// networkOf names the bridge or bond above an interface, or else the interface. The ports of
// a bridge with VLANs can be in different networks.
func networkOf(l netlink.Link, byIndex map[int]netlink.Link) string {
	const deepest = 8 // as in the kernel
	for range deepest {
		above := byIndex[l.Attrs().MasterIndex]
		bridge, isBridge := above.(*netlink.Bridge)
		_, isBond := above.(*netlink.Bond)
		if !isBond && (!isBridge || bridge.VlanFiltering != nil && *bridge.VlanFiltering) {
			break
		}
		l = above
	}
	return l.Attrs().Name
}

// whyNotFree says why a virtual function cannot become a port; empty: it can. An
// interface that is up or configured may be in use.
func whyNotFree(vf virtualFunction, links map[string]hostLink, claims map[string]vfClaim) string {
	link, known := links[vf.link]
	claim, claimed := claims[vf.address]
	switch {
	case claimed && claim.Port == "":
		return "is noted as a port's, but the note cannot be read"
	case claimed:
		return "is the port " + claim.Port + " of another link"
	case vf.link == "":
		return "has no interface on this host: it is in another namespace, or has another driver or none"
	case !known:
		return vf.link + " is not in this network namespace"
	case link.up:
		return vf.link + " is up"
	case link.master:
		return vf.link + " belongs to a bridge or bond"
	case len(link.addresses) > 0:
		return vf.link + " has an address"
	}
	return ""
}

// freeVFs are a card's functions that can become ports, and why the others cannot.
func freeVFs(pf physicalFunction, links map[string]hostLink, claims map[string]vfClaim) (free []virtualFunction, others []string) {
	for _, vf := range pf.vfs {
		if why := whyNotFree(vf, links, claims); why != "" {
			others = append(others, fmt.Sprintf("vf %d %s", vf.number, why))
			continue
		}
		free = append(free, vf)
	}
	return free, others
}

// usualPorts is a link's usual number of ports: a fix suggests no fewer.
const usualPorts = 2

// tooFew says that a card has too few free functions, and how to fix it. Drayage
// never creates any itself: for that the kernel would first remove all existing
// ones.
func tooFew(pf physicalFunction, free int, others []string, want int) *Unsupported {
	numvfs := "/sys/class/net/" + pf.name + "/device/sriov_numvfs"
	u := &Unsupported{What: "port on " + pf.name, Why: fmt.Sprintf("no VF: %s can have %d virtual functions, but has none", pf.name, pf.total)}
	switch {
	case want > pf.total:
		u.Why = fmt.Sprintf("%s can have %d virtual functions, but %d are needed", pf.name, pf.total, want)
		u.Fix = "use another card, or fewer ports"
	case len(pf.vfs) == 0:
		u.Fix = fmt.Sprintf("echo %d > %s", min(pf.total, max(want, usualPorts)), numvfs)
	default:
		u.Why = fmt.Sprintf("no VF: %d are needed, but of the %d virtual functions of %s %d are free", want, len(pf.vfs), pf.name, free)
		if len(others) > 0 {
			const most = 4 // of perhaps hundreds
			u.Why += ": " + strings.Join(others[:min(len(others), most)], ", ")
		}
		u.Fix = fmt.Sprintf("ip link set IFACE down for unused ones; or, while none is in use, echo 0 > %s and echo %d > %s",
			numvfs, min(pf.total, max(want, 2*len(pf.vfs))), numvfs)
	}
	return u
}

// errNoPF says that no card has virtual functions.
func errNoPF() *Unsupported {
	return &Unsupported{
		What: "SR-IOV", Why: "no VF: no network interface of this host has SR-IOV",
		Fix: "install a network card with SR-IOV, and enable SR-IOV in its firmware",
	}
}

// choose finds the card, by name if given, and that many free functions of it. A
// card chosen without a name must support packets of mtu bytes.
func (p vfPool) choose(name string, want, mtu int) (physicalFunction, []virtualFunction, error) {
	links, err := hostLinks()
	if err != nil {
		return physicalFunction{}, nil, err
	}
	return p.chooseAmong(name, want, mtu, links)
}

func (p vfPool) chooseAmong(name string, want, mtu int, links map[string]hostLink) (physicalFunction, []virtualFunction, error) {
	pfs, err := physicalFunctions(p.sysfs)
	if err != nil {
		return physicalFunction{}, nil, err
	}
	claims, err := p.claimed()
	if err != nil {
		return physicalFunction{}, nil, err
	}
	var reasons []error
	for _, pf := range pfs {
		if name != "" && pf.name != name {
			continue
		}
		free, others := freeVFs(pf, links, claims)
		switch link := links[pf.name]; {
		case len(free) < want:
			reasons = append(reasons, tooFew(pf, len(free), others, want))
		case name == "" && !link.up:
			reasons = append(reasons, &Unsupported{What: "port on " + pf.name, Why: pf.name + " is down", Fix: "ip link set " + pf.name + " up"})
		case name == "" && link.mtu < mtu:
			reasons = append(reasons, &Unsupported{What: "port on " + pf.name,
				Why: fmt.Sprintf("%s has MTU %d, but %d is needed", pf.name, link.mtu, mtu), Fix: fmt.Sprintf("ip link set %s mtu %d", pf.name, mtu)})
		case !link.carrier && link.up:
			reasons = append(reasons, &Unsupported{What: "port on " + pf.name, Why: pf.name + " has no carrier, so its virtual functions have none", Fix: "plug in its cable"})
		default:
			return pf, free[:want], nil
		}
	}
	switch {
	case len(reasons) > 0:
		return physicalFunction{}, nil, errors.Join(reasons...)
	case name != "" && len(pfs) > 0:
		return physicalFunction{}, nil, &Unsupported{What: "port on " + name, Why: name + " has no SR-IOV", Fix: "use " + pfs[0].name}
	}
	return physicalFunction{}, nil, errNoPF()
}

// ProbeVFs looks for a virtual function that could become a port. It changes nothing.
func ProbeVFs() error {
	p, err := hostVFs()
	if err != nil {
		return err
	}
	_, _, err = p.choose("", 1, 0)
	return err
}

// countFreeVFs counts each card's functions that could become ports, by the card's
// interface.
func (p vfPool) countFreeVFs(links map[string]hostLink) (map[string]int, error) {
	pfs, err := physicalFunctions(p.sysfs)
	if err != nil {
		return nil, err
	}
	claims, err := p.claimed()
	if err != nil {
		return nil, err
	}
	count := map[string]int{}
	for _, pf := range pfs {
		free, _ := freeVFs(pf, links, claims)
		count[pf.name] = len(free)
	}
	return count, nil
}
