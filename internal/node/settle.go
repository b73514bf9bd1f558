// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"slices"
	"time"

	"github.com/drayage/dray/internal/spec/inventory"
)

// Settle is how long a command must run to count as started.
const Settle = 500 * time.Millisecond

// WithLogs adds the last output of every failed function.
func (l *Live) WithLogs(err error) error {
	functions, _, statusErr := l.Status()
	if statusErr != nil {
		return err
	}
	for _, st := range functions {
		if st.Phase == PhaseFailed || st.Phase == PhaseRestarting {
			if out := l.LogTail(st.Name, 5); out != "" && st.Error == "" {
				err = fmt.Errorf("%w; its last output:\n%s", err, out)
			}
		}
	}
	return err
}

// LeaveOutClaimed removes the CPUs from an inventory that chains other than self own.
func (n *Node) LeaveOutClaimed(inv *inventory.Inventory, self string) error {
	claimed, err := n.ClaimedCPUs()
	if err != nil {
		return err
	}
	for chainName, cpus := range claimed {
		if chainName == self {
			continue
		}
		inv.Host.CPUs = slices.DeleteFunc(inv.Host.CPUs, func(cpu int) bool { return slices.Contains(cpus, cpu) })
	}
	return nil
}
