// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"

	"github.com/drayage/dray/internal/plan"
)

// Brokered is a chain whose native ports a broker serves.
type Brokered struct {
	Chain string
	Dir   string // of the broker's state
	Links []plan.Link
}

// Brokered are this host's chains with a broker, including chains that another dray
// is changing.
func (n *Node) Brokered() ([]Brokered, error) {
	list, err := n.List()
	if err != nil {
		return nil, err
	}
	var all []Brokered
	for _, found := range list {
		if found.Condition != Up && found.Condition != Busy {
			continue
		}
		dir := n.BrokerDir(found.Chain)
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		var s State
		if err := readJSON(filepath.Join(n.dir(found.Chain), fileState), &s); err != nil || s.Plan == nil {
			continue // not complete yet
		}
		all = append(all, Brokered{Chain: found.Chain, Dir: dir, Links: s.Plan.Links})
	}
	return all, nil
}
