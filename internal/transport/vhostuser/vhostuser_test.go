// SPDX-License-Identifier: Apache-2.0

package vhostuser_test

import (
	"testing"

	"github.com/drayage/dray/internal/transport/transporttest"
	"github.com/drayage/dray/internal/transport/vhostuser"
)

func TestConformance(t *testing.T) { transporttest.RunDpdk(t, vhostuser.New(), 0, 1) }
