// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/drayage/dray/internal/spec/inventory"
)

// clash is an address of a port that a station on the port's uplink has.
type clash struct {
	link, uplink string
	end          End
	field, value string // of the port
	station      inventory.Station
}

func (c clash) constraint() string { return fmt.Sprintf("%s %s of %s", c.field, c.value, c.end) }

func (c clash) reason() string {
	return fmt.Sprintf("%s has this address on %s", c.station, c.uplink)
}

func (c clash) fix() string {
	fix := fmt.Sprintf("give %s another %s", c.end, c.field)
	if c.station.Chain != "" {
		fix += ", or take the other chain down: dray down " + c.station.Chain
	}
	return fix
}

// uplink is the host interface that the link leads to; empty: none.
func (l Link) uplink() string {
	for _, e := range l.Ends {
		if e.Uplink != "" {
			return e.Uplink
		}
	}
	return ""
}

// OnUplinks are the links that lead to a host interface.
func OnUplinks(links []Link) []Link {
	return slices.DeleteFunc(slices.Clone(links), func(l Link) bool { return l.uplink() == "" })
}

// AddStations adds the ports of a chain's links to the stations on their uplinks.
func AddStations(to map[string][]inventory.Station, chainName string, links []Link) {
	for _, l := range links {
		on := l.uplink()
		for _, e := range l.Ends {
			if on != "" && e.Uplink == "" {
				to[on] = append(to[on], inventory.Station{Chain: chainName, Port: e.String(), IPs: []netip.Addr{e.IP.Addr().Unmap()}, MAC: string(e.MAC)})
			}
		}
	}
}

// CheckStations is an error if a port has an address of a station on its uplink.
func CheckStations(links []Link, stations map[string][]inventory.Station) error {
	if all := clashes(links, stations); len(all) > 0 {
		c := all[0]
		return fmt.Errorf("link %s: %s: %s; %s", c.link, c.constraint(), c.reason(), c.fix())
	}
	return nil
}

// clashes are at most one for each field of a port.
func clashes(links []Link, stations map[string][]inventory.Station) []clash {
	var all []clash
	for _, l := range links {
		on := l.uplink()
		for _, e := range l.Ends {
			if on == "" || e.Uplink != "" {
				continue
			}
			add := func(field, value string, has func(inventory.Station) bool) {
				if i := slices.IndexFunc(stations[on], has); i >= 0 {
					all = append(all, clash{l.Name, on, e, field, value, stations[on][i]})
				}
			}
			ip := e.IP.Addr().Unmap()
			add("ip", ip.String(), func(s inventory.Station) bool { return ip.IsValid() && slices.Contains(s.IPs, ip) })
			add("mac", string(e.MAC), func(s inventory.Station) bool { return e.MAC != "" && s.MAC == string(e.MAC) })
		}
	}
	return all
}

// checkStations refuses addresses that the host or another chain has on an uplink.
func (p *planner) checkStations() {
	for _, c := range clashes(p.plan.Links, p.stations()) {
		v := Violation{Subject: "link " + c.link, Constraint: c.constraint(), Reason: c.reason(), Fix: c.fix(), Hard: true}
		if f := p.chain.Function(c.end.Function); f != nil {
			if port := f.Port(c.end.Port); port != nil {
				v.Pos = at(port.FieldPos, c.field, port.Pos)
			}
		}
		p.violate(v)
	}
}

// stations are what is known to be on the networks of the host's interfaces.
func (p *planner) stations() map[string][]inventory.Station {
	on, all := map[string][]inventory.Station{}, map[string][]inventory.Station{}
	for _, i := range p.inv.Interfaces {
		network := cmp.Or(i.Network, i.Name)
		on[network] = append(on[network], i.Stations...)
	}
	for _, i := range p.inv.Interfaces {
		all[i.Name] = on[cmp.Or(i.Network, i.Name)]
	}
	return all
}
