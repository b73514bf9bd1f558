// SPDX-License-Identifier: Apache-2.0

package ovs_test

import (
	"testing"

	"github.com/drayage/dray/internal/link/ovs"
	"github.com/drayage/dray/internal/link/transporttest"
)

func TestTunnelConformance(t *testing.T) { transporttest.Run(t, ovs.NewTunnel()) }

func TestTunnelHosts(t *testing.T) { transporttest.RunTunnel(t, ovs.NewTunnel()) }
