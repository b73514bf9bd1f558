// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"slices"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/guest"
	"github.com/drayage/dray/internal/record"
)

// inMachine reports whether the generator is a DPDK application in a virtual machine.
// Each machine has its own clock: there one thread is both ends.
func inMachine(c record.Config) bool {
	return c.Runtime == string(chain.RuntimeVM) && c.Face == string(chain.FaceDPDK)
}

// emulated is the mark of a trial on a machine whose CPUs are emulated; nil elsewhere.
func (s *site) emulated() []string {
	if s.live == nil {
		return nil
	}
	for _, sandbox := range s.live.State.Sandboxes {
		if sandbox.Guest == "" {
			continue
		}
		// What cannot be told is not taken for native.
		if info, err := guest.ReadInfo(sandbox.Guest); err != nil || info.Accel != guest.KVM {
			return []string{record.MarkEmulated}
		}
	}
	return nil
}

// mark adds marks that a trial does not have: the instrument may have seen the same.
func mark(t *record.Trial, marks []string) {
	for _, m := range marks {
		if !slices.Contains(t.Marks, m) {
			t.Marks = append(t.Marks, m)
		}
	}
}
