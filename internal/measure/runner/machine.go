// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"slices"

	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Machine is the host on which a matrix's items come up, each as a chain.
type Machine struct {
	Node      *node.Node
	Inventory *inventory.Inventory
	// Env describes the machine and a chain; nil: only the machine.
	Env func(*node.Live) record.Environment

	cameUp []string // keys of doctor.MarkRun
}

// NewMachine returns the machine on which a program of that version measures.
func NewMachine(n *node.Node, inv *inventory.Inventory, version string) *Machine {
	return &Machine{Node: n, Inventory: inv, Env: func(live *node.Live) record.Environment { return Environment(inv, live, version) }}
}

// Create brings a chain up.
func (m *Machine) Create(ctx context.Context, c *chain.Chain, text []byte, p *plan.Plan) (*node.Live, error) {
	live, err := m.Node.Create(ctx, "bench", c, text, p)
	if err != nil {
		return nil, err
	}
	for _, l := range p.Links {
		if key := doctor.Transports.Key(l.Transport); !slices.Contains(m.cameUp, key) {
			m.cameUp = append(m.cameUp, key)
		}
	}
	return live, nil
}

// MarkRun records which transports came up on this host.
func (m *Machine) MarkRun() error { return doctor.MarkRun(m.Node.StateDir, m.cameUp...) }
