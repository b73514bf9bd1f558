// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
)

// room is the largest user's packet, in bytes, that fits into each link of a path.
func (p *Plan) room(path Path) []int {
	var all []int
	tunnelled := p.tunnelled(path)
	for i, s := range path.Steps {
		l := p.Link(s.Link)
		mtu := l.MTU
		if most, crosses := p.betweenHosts(l); crosses {
			mtu = min(mtu, most)
		}
		if tunnelled[i] {
			mtu -= path.GTPU.Headers()
		}
		all = append(all, mtu)
	}
	return all
}

// betweenHosts is the largest packet that a link's tunnel between hosts can carry, in bytes.
// It is below the ports' MTU if the underlay has no room for the tunnel: then there is no such
// link.
func (p *Plan) betweenHosts(l *Link) (most int, crosses bool) {
	if !l.Tunnel() || p.Hosts == nil {
		return 0, false
	}
	return p.Hosts.Underlay.MTU - chain.VXLANOverhead, true
}

// tunnelled says which links of a path carry its packets inside GTP-U: those between the end
// that has the tunnels and the function with the address that they lead to. If no port on the
// path has that address, the end's neighbour has it in its program.
func (p *Plan) tunnelled(path Path) []bool {
	inside := make([]bool, len(path.Steps))
	if path.GTPU == nil {
		return inside
	}
	steps := slices.Clone(path.Steps) // from the end that has the tunnels
	next := func(s chain.Step) string { return s.In.Function }
	if path.GTPU.At == chain.SideTo {
		slices.Reverse(steps)
		next = func(s chain.Step) string { return s.Out.Function }
	}
	last := max(0, slices.IndexFunc(steps, func(s chain.Step) bool { return p.hasAddress(next(s), path.GTPU.To) }))
	for i := range last + 1 {
		inside[i] = true
	}
	if path.GTPU.At == chain.SideTo {
		slices.Reverse(inside)
	}
	return inside
}

// hasAddress reports whether a port of a function has an address.
func (p *Plan) hasAddress(function string, ip netip.Addr) bool {
	return slices.ContainsFunc(p.Links, func(l Link) bool {
		return slices.ContainsFunc(l.Ends, func(e End) bool { return e.Function == function && e.IP.Addr() == ip })
	})
}

// judgeMTU takes the link with the least room for a user's packet.
func (p *Plan) judgeMTU(path Path) Evidence {
	room := p.room(path)
	least := slices.Min(room)
	at := slices.Index(room, least)
	ev := Evidence{
		Requirement: "mtu", Required: fmt.Sprintf("≥ %d B", path.Requires.MTU), Expected: fmt.Sprintf("%d B", least),
		Source: "link " + path.Steps[at].Link, Meets: least >= path.Requires.MTU,
	}
	if l := p.Link(path.Steps[at].Link); p.tooWide(l, l.MTU) {
		ev.Source += fmt.Sprintf(", of which VXLAN takes %d B of the underlay's %d", chain.VXLANOverhead, p.Hosts.Underlay.MTU)
	}
	if p.tunnelled(path)[at] {
		ev.Source += fmt.Sprintf(", where GTP-U takes %d B", path.GTPU.Headers())
	}
	return ev
}

// tooWide reports whether the underlay has no room for packets of that size on a link.
func (p *Plan) tooWide(l *Link, mtu int) bool {
	most, crosses := p.betweenHosts(l)
	return crosses && mtu > most
}

// widen is how the required packets would fit into a path's narrow links.
func (p *Plan) widen(path Path) string {
	var links []string
	underlay, tunnelled := 0, p.tunnelled(path)
	for i, room := range p.room(path) {
		link, needs := p.Link(path.Steps[i].Link), path.Requires.MTU
		if tunnelled[i] {
			needs += path.GTPU.Headers()
		}
		if room < path.Requires.MTU && link.MTU < needs {
			links = append(links, fmt.Sprintf("%s an mtu of %d", link.Name, needs))
		}
		if wide := max(link.MTU, needs); room < path.Requires.MTU && p.tooWide(link, wide) {
			underlay = max(underlay, wide+chain.VXLANOverhead)
		}
	}
	var fixes []string
	if links != nil {
		fixes = append(fixes, "give the ports of link "+strings.Join(links, ", and those of link "))
	}
	if underlay > 0 {
		fixes = append(fixes, fmt.Sprintf("give the network between the hosts an mtu of %d", underlay))
	}
	return strings.Join(fixes, ", and ")
}
