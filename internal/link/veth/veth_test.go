// SPDX-License-Identifier: Apache-2.0

package veth_test

import (
	"testing"

	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/link/veth"
)

func TestConformance(t *testing.T) { transporttest.Run(t, veth.New()) }
