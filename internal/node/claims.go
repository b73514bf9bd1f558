// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/inventory"
)

// claims are what chains keep from others.
type claims struct {
	cpus     map[string][]int               // by chain
	stations map[string][]inventory.Station // ports, by interface of the host
}

// claims are those of this node's chains other than self. A chain's ports answer until it
// has been removed. Only root sees any chain. A chain whose state cannot be read claims
// nothing, although its ports may answer, until `dray down` or `dray gc` removes it.
func (n *Node) claims(self string) (claims, error) {
	c := claims{map[string][]int{}, map[string][]inventory.Station{}}
	list, err := n.List()
	if errors.Is(err, fs.ErrPermission) {
		return c, nil
	}
	for _, found := range list {
		if found.Chain == self || found.Condition == Lost || found.Condition == Foreign {
			continue
		}
		s, err := n.readState(found.Chain)
		if host.IsDamaged(err) || errors.Is(err, fs.ErrNotExist) {
			continue // not complete yet, or broken
		}
		if err != nil {
			return c, err
		}
		if cpus := s.claimedCPUs(); len(cpus) > 0 {
			c.cpus[found.Chain] = cpus
		}
		plan.AddStations(c.stations, found.Chain, s.Plan.Links)
		plan.AddStations(c.stations, found.Chain, s.Coming)
	}
	return c, err
}

// LeaveOutClaimed removes the CPUs from an inventory that chains other than self own, and
// adds the ports of those chains.
func (n *Node) LeaveOutClaimed(inv *inventory.Inventory, self string) error {
	claimed, err := n.claims(self)
	for _, cpus := range claimed.cpus {
		inv.Host.CPUs = slices.DeleteFunc(inv.Host.CPUs, func(cpu int) bool { return slices.Contains(cpus, cpu) })
	}
	for i := range inv.Interfaces {
		on := &inv.Interfaces[i]
		on.Stations = append(on.Stations, claimed.stations[on.Name]...)
	}
	return err
}

// checkClaimed rejects what a plan for a chain takes that another chain has since got: CPUs,
// and the addresses of links on an interface of the host. Of two that begin at once, one on a
// bridge and one on its port, both go on.
func (n *Node) checkClaimed(name string, cpus []int, links []plan.Link) error {
	claimed, err := n.claims(name)
	if err != nil {
		return err
	}
	for other, taken := range claimed.cpus {
		for _, cpu := range cpus {
			if slices.Contains(taken, cpu) {
				return fmt.Errorf("CPU %d was given to chain %s in the meantime: run the command again", cpu, other)
			}
		}
	}
	return plan.CheckStations(links, claimed.stations)
}
