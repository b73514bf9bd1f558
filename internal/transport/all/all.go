// SPDX-License-Identifier: Apache-2.0

// Package all lists every transport driver.
package all

import (
	"github.com/drayage/dray/internal/transport"
	"github.com/drayage/dray/internal/transport/afpacket"
	"github.com/drayage/dray/internal/transport/afxdp"
	"github.com/drayage/dray/internal/transport/bridge"
	"github.com/drayage/dray/internal/transport/dpdkring"
	"github.com/drayage/dray/internal/transport/loopback"
	"github.com/drayage/dray/internal/transport/macvlan"
	"github.com/drayage/dray/internal/transport/memif"
	"github.com/drayage/dray/internal/transport/native"
	"github.com/drayage/dray/internal/transport/ovs"
	"github.com/drayage/dray/internal/transport/ovsdpdk"
	"github.com/drayage/dray/internal/transport/shm"
	"github.com/drayage/dray/internal/transport/sriov"
	"github.com/drayage/dray/internal/transport/veth"
	"github.com/drayage/dray/internal/transport/vhostuser"
	"github.com/drayage/dray/internal/transport/vpp"
	"github.com/drayage/dray/internal/transport/vxlan"
)

// All returns the drivers, fastest first, the baseline last.
func All() []transport.Driver {
	return []transport.Driver{
		shm.New(), memif.New(), vhostuser.New(), ovsdpdk.New(), ovsdpdk.NewDray(), native.Wrap(veth.New()), native.Wrap(macvlan.New()), native.Wrap(macvlan.NewTap()), native.Wrap(bridge.New()),
		native.Wrap(ovs.New()), native.Wrap(afpacket.New()), afxdp.New(), native.Wrap(vxlan.New()), native.Wrap(ovs.NewTunnel()), ovsdpdk.NewTunnel(), vpp.New(), vpp.NewMemif(), dpdkring.New(), native.Wrap(sriov.New()), loopback.New(),
	}
}

// Get returns the driver of that name, or nil.
func Get(name string) transport.Driver {
	for _, d := range All() {
		if d.Name() == name {
			return d
		}
	}
	return nil
}
