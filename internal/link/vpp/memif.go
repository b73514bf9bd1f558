// SPDX-License-Identifier: Apache-2.0

package vpp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/sidecar"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/vhost"
	"github.com/drayage/dray/internal/spec/dpdk"
)

// memif makes VPP map the rings and buffers of each application's device: the client
// provides the memory, so VPP creates the socket. Without zero-copy that is not all of
// the application's memory. With it, a second device of an application of DPDK 22.11
// closes the descriptors of the first.
type memif struct{}

// ringLog is the ring length as a power of two, as net_memif expects it;
// ringSlots is the same as a number, as VPP expects it.
const (
	ringLog   = 10
	ringSlots = 1 << ringLog
)

func memifDir(s transport.Spec, i int) string { return filepath.Join(s.Dir, fmt.Sprintf("end%d", i+1)) }

// memifInside is the path of that directory inside VPP's container.
func memifInside(i int) string { return fmt.Sprintf("/links/%d", i+1) }

func (memif) prepare(driver string, s transport.Spec) []step.Step {
	var steps []step.Step
	for i, e := range s.Ends {
		dir := memifDir(s, i)
		steps = append(steps, step.Step{
			Name:  s.StepName(driver, fmt.Sprintf("create the directory of end %d %s", i+1, e.Name)),
			Makes: []step.Resource{host.DirResource(dir)},
			Do: func(context.Context) error {
				// VPP owns it: the function cannot take the place of its socket.
				if err := os.Mkdir(dir, 0o700); err != nil {
					return err
				}
				if err := host.ShortenDir(dir, dpdk.MemifSocket); err != nil {
					return err
				}
				owner := sidecar.UID(vhost.Owner(s))
				if err := os.Chown(dir, owner, owner); err != nil {
					return err
				}
				return host.LetConnect(dir, e.User)
			},
		})
	}
	return steps
}

// vdev is the device of an end. A container has a link to the socket in a directory of
// its own, since net_memif must be able to write to the directory of its path.
func (memif) vdev(s transport.Spec, i int) transport.Vdev {
	e := s.Ends[i]
	v := transport.Vdev{
		Function: e.Function, Port: e.Name, Driver: dpdk.NetMemif,
		Options: fmt.Sprintf("socket={dir}/%s,socket-abstract=no,role=client,id=0,rsize=%d,mac=%s", dpdk.MemifSocket, ringLog, e.MAC),
		Dir:     e.Dir, Peer: memifDir(s, i), Awaits: dpdk.MemifSocket,
		EndsWithLink: true,
	}
	if !e.Runtime.Contained() {
		v.Dir, v.Peer = v.Peer, ""
	}
	return v
}

func (memif) binds(s transport.Spec) []sidecar.Bind {
	var list []sidecar.Bind
	for i := range s.Ends {
		list = append(list, sidecar.Bind{Source: memifDir(s, i), Target: memifInside(i), Write: true})
	}
	return list
}

func (memif) plugin() string { return "memif_plugin.so" }

func (memif) files(transport.Spec) []int { return nil }

func (memif) create(s transport.Spec, i int) ([]string, string) {
	n, q := i+1, vhost.Queues(s.Ends[i])
	return []string{
		fmt.Sprintf("create memif socket id %d filename %s/%s", n, memifInside(i), dpdk.MemifSocket),
		fmt.Sprintf("create interface memif id 0 socket-id %d ring-size %d rx-queues %d tx-queues %d master", n, ringSlots, q, q),
	}, fmt.Sprintf("memif%d/0", n)
}
