// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestDumpStartsAgain(t *testing.T) {
	other, calls := errors.New("other"), 0
	fails := func(times int, err error) func() ([]int, error) {
		calls = 0
		return func() ([]int, error) {
			if calls++; calls <= times {
				return []int{0}, err
			}
			return []int{1}, nil
		}
	}
	interrupted := fmt.Errorf("wrapped: %w", netlink.ErrDumpInterrupted)
	if all, err := dump(fails(3, interrupted)); err != nil || len(all) != 1 || all[0] != 1 {
		t.Errorf("interrupted three times: %v, %v", all, err)
	}
	if _, err := dump(fails(dumpTries, interrupted)); !errors.Is(err, netlink.ErrDumpInterrupted) {
		t.Errorf("interrupted always: %v", err)
	}
	if _, err := dump(fails(1, other)); !errors.Is(err, other) || calls != 1 {
		t.Errorf("another error: %v after %d calls", err, calls)
	}
}
