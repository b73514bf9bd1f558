// SPDX-License-Identifier: Apache-2.0

package ovsdpdk_test

import (
	"testing"

	"github.com/drayage/dray/internal/transport/ovsdpdk"
	"github.com/drayage/dray/internal/transport/transporttest"
)

func TestTwoEnds(t *testing.T) { transporttest.RunDpdk(t, ovsdpdk.New(), 0, 1) }

func TestDray(t *testing.T) { transporttest.RunDpdk(t, ovsdpdk.NewDray(), 0, 1) }

// TestInterface: one of the ends is a network interface.
func TestInterface(t *testing.T) { transporttest.RunDpdkBeside(t, ovsdpdk.New()) }

func TestThreeEnds(t *testing.T) { transporttest.RunDpdkMany(t, ovsdpdk.New(), 0, 1, 2) }
