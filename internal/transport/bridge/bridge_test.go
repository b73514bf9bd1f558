// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"testing"

	"github.com/drayage/dray/internal/transport/bridge"
	"github.com/drayage/dray/internal/transport/transporttest"
)

func TestConformance(t *testing.T) { transporttest.Run(t, bridge.New()) }
