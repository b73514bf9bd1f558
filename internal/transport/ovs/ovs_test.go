// SPDX-License-Identifier: Apache-2.0

package ovs_test

import (
	"testing"

	"github.com/drayage/dray/internal/transport/ovs"
	"github.com/drayage/dray/internal/transport/transporttest"
)

func TestConformance(t *testing.T) { transporttest.Run(t, ovs.New()) }
