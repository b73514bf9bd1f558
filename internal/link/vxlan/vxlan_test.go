// SPDX-License-Identifier: Apache-2.0

package vxlan_test

import (
	"testing"

	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/link/vxlan"
)

func TestConformance(t *testing.T) { transporttest.Run(t, vxlan.New()) }

func TestHosts(t *testing.T) { transporttest.RunTunnel(t, vxlan.New()) }
