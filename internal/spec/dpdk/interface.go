// SPDX-License-Identifier: Apache-2.0

package dpdk

import "net/netip"

// Interface is the network interface that a VM's kernel makes of a device that a switch
// reaches by vhost-user.
type Interface struct {
	Socket     string       `json:"socket"` // name in the Vdev's Dir; the VM makes it, the switch connects
	MAC        string       `json:"mac"`
	IP         netip.Prefix `json:"ip,omitempty"`
	MTU        int          `json:"mtu"` // bytes of L3 packet
	Neighbours []Neighbour  `json:"neighbours,omitempty"`
}

// Neighbour is an address that nobody answers for: no kernel has it.
type Neighbour struct {
	IP  netip.Addr `json:"ip"`
	MAC string     `json:"mac"`
}
