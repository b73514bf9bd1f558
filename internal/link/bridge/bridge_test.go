// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"testing"

	"github.com/drayage/dray/internal/link/bridge"
	"github.com/drayage/dray/internal/link/transporttest"
)

func TestConformance(t *testing.T) { transporttest.Run(t, bridge.New()) }
