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
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Name is the transport's name in a chain file.
const Name = "sr-iov"

type driver struct{}

// New returns the driver.
func New() transport.Driver { return driver{} }

func (driver) Name() string { return Name }

func (driver) Caps() inventory.Caps {
	return inventory.Caps{
		Faces:      []string{string(chain.FaceNetdev)},
		Isolation:  string(chain.IsolationNoSharedMemory),
		MinEnds:    1, // in addition to an uplink
		Uplink:     true,
		VFs:        true,
		Shapes:     true,
		MaxMTU:     9216, // of the most common drivers; each rejects a larger MTU than its own
		Rank:       -6,   // a card has few VFs: use them only on request
		Privileges: "none",
		Copies:     2,
		KernelPath: "socket, driver of a virtual function, switch of the network card, driver of the other, socket",
		Note:       "takes virtual functions that exist and are down; all of one card, and its line, are one broadcast domain",
	}
}

func (driver) Probe(context.Context) inventory.Item {
	return host.ProbeItem(Name, host.ProbeVFs())
}

func (d driver) Build(s transport.Spec) (*transport.Build, error) {
	if err := transport.Check(Name, d.Caps(), s); err != nil {
		return nil, err
	}
	build := transport.NewBuild()
	card := ""
	for _, uplink := range s.Uplinks() {
		if uplink.Netns != host.HostNetns {
			return nil, fmt.Errorf("link %s cannot use transport %s: %s is not an interface of the host's own network namespace", s.Link, Name, uplink.Name)
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
