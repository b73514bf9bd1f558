// SPDX-License-Identifier: Apache-2.0

// Package sriov makes ports from the VFs of a network card; the card's own
// switch joins them with each other and with the wire.
package sriov

import (
	"context"
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Name is the transport's name in a chain file.
const Name = "sr-iov"

// New returns the driver.
func New() transport.Driver { return transport.Define(Name, caps, transport.Try(host.ProbeVFs), build) }

var caps = transport.Interfaces(inventory.Caps{
	MinEnds:    1, // in addition to an uplink
	Uplink:     true,
	VFs:        true,
	MaxMTU:     9216, // of the most common drivers; each rejects a larger MTU than its own
	Rank:       -6,   // a card has few VFs: use them only on request
	KernelPath: "socket, driver of a virtual function, switch of the network card, driver of the other, socket",
	Note:       "uses virtual functions that exist and are down; all VFs of a card, and its line, are one broadcast domain",
})

func build(s transport.Spec) (*transport.Build, error) {
	build := transport.NewBuild()
	card := ""
	for _, uplink := range s.Uplinks() {
		if uplink.Netns != host.HostNetns {
			return nil, s.Refuse(Name, fmt.Errorf("%s is not an interface of the host's own network namespace", uplink.Name))
		}
		card = uplink.Name
		build.Steps = append(build.Steps, s.CheckUplink(Name, uplink))
	}
	take := step.Step{Name: s.StepName(Name, "take virtual functions")}
	var ports []host.Iface
	for _, e := range s.Ports() {
		ports = append(ports, s.Iface(e))
		take.Makes = append(take.Makes, host.VFResource(e.Netns, e.Name, e.MAC))
	}
	take.Do = func(ctx context.Context) error {
		taken, err := host.TakeVFs(ctx, card, ports)
		build.Report.Engine = "switch of " + taken
		return err
	}
	build.Steps = append(build.Steps, take)

	// A VF has the queues that its card gives it; the step that took it has
	// checked that there are enough.
	read := s
	read.Ends = slices.Clone(s.Ends)
	for i := range read.Ends {
		read.Ends[i].Queues = 0
	}
	build.Finish(Name, read)
	return build, nil
}
