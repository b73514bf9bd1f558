// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"

	"github.com/drayage/dray/internal/spec/inventory"
)

// Uplinks lists the host interfaces that a link could use as an uplink: those that
// carry Ethernet frames out of this network namespace. Drayage keeps none of its
// own here.
func Uplinks() ([]inventory.Interface, error) {
	nl, err := HostNetns.handle()
	if err != nil {
		return nil, err
	}
	defer nl.Close()
	links, err := dump(nl.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list host interfaces: %w", err)
	}
	interfaces := uplinksAmong(links)
	p, err := hostVFs()
	if err != nil {
		return nil, err
	}
	states, err := hostLinks()
	if err != nil {
		return nil, err
	}
	free, err := p.countFreeVFs(states)
	if err != nil {
		return nil, err
	}
	for i := range interfaces {
		name := interfaces[i].Name
		interfaces[i].VFs = free[name]
		interfaces[i].Network = states[name].network
		interfaces[i].Stations = []inventory.Station{{IPs: states[name].addresses, MAC: states[name].mac}}
	}
	return interfaces, nil
}

func uplinksAmong(links []netlink.Link) []inventory.Interface {
	interfaces := []inventory.Interface{}
	for _, l := range links {
		a := l.Attrs()
		// An ifb only redirects another interface's ingress.
		if a.EncapType != "ether" || a.Flags&net.FlagLoopback != 0 || l.Type() == "ifb" {
			continue
		}
		interfaces = append(interfaces, inventory.Interface{
			Name: a.Name, Kind: l.Type(), MTU: a.MTU, Up: a.Flags&net.FlagUp != 0,
		})
	}
	return interfaces
}
