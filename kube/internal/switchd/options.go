// SPDX-License-Identifier: Apache-2.0

// Package switchd is the switch of a node: it runs Open vSwitch with DPDK, and gives it the links
// that dray-node asks for. Each link has a bridge of its own. Nothing but the journal of what is
// wanted outlives the process: the next one makes everything again.
//
// The bridges are of the kind that Open vSwitch has for its own tests. It is the same datapath, but
// its local ports are no interfaces of the kernel. So the switch needs no /dev/net/tun, which
// a pod with a user namespace cannot have. The pod's interface keeps its address, too: the bridge of
// the tunnels has it as well, and sends and receives by a packet socket.
package switchd

import (
	"errors"
	"fmt"
	"log/slog"
)

// Options of a switch.
type Options struct {
	Dir string // shared with dray-node and the broker; only root may look into it
	Run string // for Open vSwitch: database and sockets; a file system in memory will do
	// Device is the interface of this network namespace that carries tunnels.
	Device string
	Port   int   // UDP port at which every switch receives tunnels
	Memory int   // of packets, MiB
	CPUs   []int // that poll; none: the last that this process may use
	// Poll never sleeps. Without it, a polling thread with nothing to do sleeps for up to 50 µs.
	Poll bool
	Log  *slog.Logger
}

// Port is IANA's for VXLAN (RFC 7348).
const Port = 4789

// leastMemory is enough for a link, in MiB.
const leastMemory = 256

func (o *Options) check() error {
	switch {
	case o.Dir == "" || o.Run == "" || o.Device == "":
		return errors.New("a switch needs two directories and an interface")
	case o.Port < 1 || o.Port > 65535:
		return fmt.Errorf("port %d of tunnels: 1 to 65535", o.Port)
	case o.Memory < leastMemory:
		return fmt.Errorf("%d MiB for packets: at least %d", o.Memory, leastMemory)
	}
	return nil
}
