// SPDX-License-Identifier: Apache-2.0

package vhostuser_test

import (
	"testing"

	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/link/vhostuser"
)

func TestConformance(t *testing.T) { transporttest.RunDpdk(t, vhostuser.New(), 0, 1) }
