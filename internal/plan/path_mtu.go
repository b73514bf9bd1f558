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
		mtu := p.Link(s.Link).MTU
		if tunnelled[i] {
			mtu -= path.GTPU.Headers()
		}
		all = append(all, mtu)
	}
	return all
}

// tunnelled says which links of a path carry its packets inside GTP-U: those between the end
// that has the tunnels and the function with the address that they lead to, or all if no
// function has it.
func (p *Plan) tunnelled(path Path) []bool {
	inside := make([]bool, len(path.Steps))
	for i := range path.Steps {
		if path.GTPU == nil {
			break
		}
		at, next := i, path.Steps[i].In.Function
		if path.GTPU.At == chain.SideTo { // from the path's other end
			at = len(path.Steps) - 1 - i
			next = path.Steps[at].Out.Function
		}
		inside[at] = true
		if p.hasAddress(next, path.GTPU.To) {
			break
		}
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
	if p.tunnelled(path)[at] {
		ev.Source += fmt.Sprintf(", where GTP-U takes %d B", path.GTPU.Headers())
	}
	return ev
}

// widen is how the ports of a path's narrow links would fit the required packets.
func (p *Plan) widen(path Path) string {
	var links []string
	for i, room := range p.room(path) {
		if short := path.Requires.MTU - room; short > 0 {
			link := p.Link(path.Steps[i].Link)
			links = append(links, fmt.Sprintf("%s an mtu of %d", link.Name, link.MTU+short))
		}
	}
	return "give the ports of link " + strings.Join(links, ", and those of link ")
}
