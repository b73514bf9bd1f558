// SPDX-License-Identifier: Apache-2.0

package loopback_test

import (
	"testing"

	"github.com/drayage/dray/internal/transport/loopback"
	"github.com/drayage/dray/internal/transport/transporttest"
)

func TestConformance(t *testing.T) { transporttest.Run(t, loopback.New()) }
