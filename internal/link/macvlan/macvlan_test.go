// SPDX-License-Identifier: Apache-2.0

package macvlan_test

import (
	"testing"

	"github.com/drayage/dray/internal/link/macvlan"
	"github.com/drayage/dray/internal/link/transporttest"
)

func TestConformance(t *testing.T) { transporttest.Run(t, macvlan.New()) }

func TestUplink(t *testing.T) { transporttest.RunUplink(t, macvlan.New()) }

func TestConformanceOfMacvtap(t *testing.T) { transporttest.Run(t, macvlan.NewTap()) }

func TestUplinkOfMacvtap(t *testing.T) { transporttest.RunUplink(t, macvlan.NewTap()) }
