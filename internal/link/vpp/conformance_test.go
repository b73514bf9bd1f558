// SPDX-License-Identifier: Apache-2.0

package vpp_test

import (
	"testing"

	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/link/vpp"
	"github.com/drayage/dray/internal/spec/chain"
)

// VPP is optional: without it, and without DRAY_VPP, these tests skip and say so.

func TestCrossConnect(t *testing.T) { transporttest.RunDpdk(t, vpp.New(), 0, 1) }

func TestBridgeDomain(t *testing.T) {
	transporttest.RunDpdkForwarding(t, vpp.New(), chain.ForwardingLearning)
}

func TestThreeEnds(t *testing.T) { transporttest.RunDpdkMany(t, vpp.New(), 0, 1, 2) }

func TestMemifCrossConnect(t *testing.T) { transporttest.RunDpdk(t, vpp.NewMemif(), 0, 1) }

func TestMemifBridgeDomain(t *testing.T) {
	transporttest.RunDpdkForwarding(t, vpp.NewMemif(), chain.ForwardingLearning)
}

func TestMemifThreeEnds(t *testing.T) { transporttest.RunDpdkMany(t, vpp.NewMemif(), 0, 1, 2) }
