// SPDX-License-Identifier: Apache-2.0

// Package all lists every transport driver.
package all

import (
	"github.com/drayage/dray/internal/link/afpacket"
	"github.com/drayage/dray/internal/link/afxdp"
	"github.com/drayage/dray/internal/link/bridge"
	"github.com/drayage/dray/internal/link/dpdkring"
	"github.com/drayage/dray/internal/link/loopback"
	"github.com/drayage/dray/internal/link/macvlan"
	"github.com/drayage/dray/internal/link/memif"
	"github.com/drayage/dray/internal/link/native"
	"github.com/drayage/dray/internal/link/ovs"
	"github.com/drayage/dray/internal/link/ovsdpdk"
	"github.com/drayage/dray/internal/link/shm"
	"github.com/drayage/dray/internal/link/sriov"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/vepa"
	"github.com/drayage/dray/internal/link/veth"
	"github.com/drayage/dray/internal/link/vhostuser"
	"github.com/drayage/dray/internal/link/vpp"
	"github.com/drayage/dray/internal/link/vxlan"
)

// All returns the drivers, fastest first, the baseline last.
func All() []transport.Driver {
	return []transport.Driver{
		shm.New(), memif.New(), vhostuser.New(), ovsdpdk.New(), ovsdpdk.NewDray(), native.Wrap(veth.New()), native.Wrap(macvlan.New()), native.Wrap(macvlan.NewTap()), native.Wrap(bridge.New()),
		native.Wrap(ovs.New()), native.Wrap(afpacket.New()), afxdp.New(), native.Wrap(vxlan.New()), native.Wrap(ovs.NewTunnel()), ovsdpdk.NewTunnel(), vpp.New(), vpp.NewMemif(), dpdkring.New(), native.Wrap(vepa.New()), native.Wrap(sriov.New()), loopback.New(),
	}
}
