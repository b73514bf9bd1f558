// SPDX-License-Identifier: Apache-2.0

// Package bridge joins ports by a Linux bridge in its own namespace. In the
// host's, br_netfilter and a FORWARD policy of DROP would block the traffic.
package bridge

import (
	"context"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Name is the transport's name in a chain file.
const Name = "bridge"

const bridgeName = "br0"

type driver struct{}

// New returns the driver.
func New() transport.Driver { return driver{} }

func (driver) Name() string { return Name }

func (driver) Caps() inventory.Caps {
	return inventory.Caps{
		Faces:      []string{string(chain.FaceNetdev)},
		Isolation:  string(chain.IsolationNoSharedMemory),
		MinEnds:    2,
		Shapes:     true,
		MaxMTU:     65535,
		Rank:       30,
		Privileges: "none",
		Copies:     2,
		KernelPath: "socket, veth, bridge forwarding, veth, socket",
		Note:       "the bridge has a network namespace of its own, without netfilter rules",
	}
}

func (driver) Probe(context.Context) inventory.Item {
	return host.ProbeItem(Name, host.ProbeBridge())
}

func (d driver) Build(s transport.Spec) (*transport.Build, error) {
	if err := transport.Check(Name, d.Caps(), s); err != nil {
		return nil, err
	}
	br := s.SwitchIface(bridgeName)
	build := transport.NewBuild(
		s.CreateSwitchNetns(Name),
		step.Step{
			Name:  s.StepName(Name, "create bridge"),
			Makes: []step.Resource{host.LinkResource(br.Netns, br.Name, br.MAC)},
			Do: func(context.Context) error {
				if err := host.CreateBridge(br); err != nil {
					return err
				}
				return br.Netns.SetUp(br.Name)
			},
		},
	)
	for i, e := range s.Ports() {
		build.Steps = append(build.Steps, s.CreatePort(Name, i, e), attach(s, i))
	}
	build.Finish(Name, s)
	build.Steps = append(build.Steps, awaitForwarding(s))
	return build, nil
}

// forwardTimeout bounds the wait for the bridge; the kernel takes up to a second.
const forwardTimeout = 10 * time.Second

// awaitForwarding is the last step: a port has a carrier only if both of its
// ends are up.
func awaitForwarding(s transport.Spec) step.Step {
	return step.Step{
		Name: s.StepName(Name, "wait until the bridge forwards"),
		Do: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
			defer cancel()
			for i := range s.Ports() {
				port := s.SwitchPort(i)
				if err := port.Netns.WaitForwarding(ctx, port.Name); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func attach(s transport.Spec, i int) step.Step {
	port := s.SwitchPort(i)
	return step.Step{
		Name: s.StepName(Name, fmt.Sprintf("attach end %d", i+1)),
		Do:   func(context.Context) error { return port.Netns.SetMaster(port.Name, bridgeName) },
	}
}
