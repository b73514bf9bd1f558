// SPDX-License-Identifier: Apache-2.0

// Package vhost is shared by the drivers whose switches reach DPDK applications and
// virtual machines by vhost-user: the device, and access to its socket.
package vhost

import (
	"context"
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/host/sidecar"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/dpdk"
)

// ringSlots is the length of a virtio ring. It absorbs the packets that arrive
// while the ends and the switch of a link take turns on one CPU.
const ringSlots = 1024

// Reached reports whether the switch reaches an end by its socket: a DPDK
// application's or a virtual machine's.
func Reached(e transport.End) bool { return e.Dpdk() || e.Machine() }

// Vdev is the device of end i, in an application or a machine. It listens, so
// that it outlives the switch.
func Vdev(s transport.Spec, i int) transport.Vdev {
	e := s.Ends[i]
	v := transport.Vdev{
		Function: e.Function, Port: e.Name, Driver: dpdk.NetVirtioUser,
		Options: fmt.Sprintf("path={dir}/%s,server=1,queues=%d,queue_size=%d,mac=%s", dpdk.VhostSocket, Queues(e), ringSlots, e.MAC),
		Dir:     e.Dir, SingleFileSegments: true,
	}
	if e.InMachine() {
		v.Driver, v.Options = dpdk.NetVirtio, ""
		v.Interface = &dpdk.Interface{Socket: dpdk.VhostSocket, MAC: e.MAC.String(), IP: e.IP, MTU: s.MTU, Neighbours: neighbours(s)}
	}
	return v
}

// neighbours are the link's addresses that no kernel resolves.
func neighbours(s transport.Spec) []dpdk.Neighbour {
	var list []dpdk.Neighbour
	for _, e := range s.Ends {
		if e.Dpdk() && e.IP.IsValid() {
			list = append(list, dpdk.Neighbour{IP: e.IP.Addr(), MAC: e.MAC.String()})
		}
	}
	return list
}

// Queues is how many queues an end has in each direction.
func Queues(e transport.End) int { return max(1, e.Queues) }

// Owner names the link's switch, and so determines its host user.
func Owner(s transport.Spec) string { return s.Chain + "/" + s.Link }

// Users are the owners of the applications' sockets.
func Users(s transport.Spec) []int {
	var list []int
	for _, e := range s.Ends {
		if Reached(e) && !slices.Contains(list, e.User) {
			list = append(list, e.User)
		}
	}
	return list
}

// HugePages reports whether a link's switch uses huge pages: it does if all
// its applications do, and no end is a machine.
func HugePages(s transport.Spec) bool {
	return slices.ContainsFunc(s.Ends, Reached) &&
		!slices.ContainsFunc(s.Ends, func(e transport.End) bool { return Reached(e) && !e.HugePages })
}

// Socket is the path at which the switch sees the socket of end i.
func Socket(i int) string { return directory(i) + "/" + dpdk.VhostSocket }

func directory(i int) string { return fmt.Sprintf("/links/%d", i+1) }

// Binds make only the directories of its link's sockets visible to the switch.
func Binds(s transport.Spec) []sidecar.Bind {
	var list []sidecar.Bind
	for i, e := range s.Ends {
		if Reached(e) {
			list = append(list, sidecar.Bind{Source: e.Dir, Target: directory(i)})
		}
	}
	return list
}

// Admit are the steps that let the switch connect to those sockets.
func Admit(driver string, s transport.Spec) []step.Step {
	var steps []step.Step
	for i, e := range s.Ends {
		if Reached(e) {
			steps = append(steps, step.Step{
				Name: s.StepName(driver, fmt.Sprintf("admit the switch to end %d %s", i+1, e.Name)),
				Do:   func(context.Context) error { return sidecar.Admit(e.Dir, Owner(s)) },
			})
		}
	}
	return steps
}
