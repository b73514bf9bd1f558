// SPDX-License-Identifier: Apache-2.0

// Package dpdk describes how a DPDK application attaches to a function's dpdk ports:
// the arguments of its environment abstraction layer (EAL).
package dpdk

import (
	"cmp"
	"path/filepath"

	"github.com/drayage/dray/internal/spec/sockpath"
)

// LinksInside is where a container sees the directories of its dpdk ports, each named
// after its port.
const LinksInside = "/run/dray/links"

// PeersInside is where a container sees the directories Vdev.Peer, named in the same way.
const PeersInside = "/run/dray/peers"

// LibInside is where a container sees the folder of the driver net_dray.
const LibInside = "/run/dray/lib"

// The drivers of a Vdev. A device is named by its driver and a number.
const (
	NetDray       = "net_dray"
	NetVirtioUser = "net_virtio_user"
	NetMemif      = "net_memif"
	NetRing       = "net_ring"
	NetAFXDP      = "net_af_xdp"
	NetVirtio     = "net_virtio" // on a machine's PCI bus
	// The two ends of a pair of rings in memory that a primary and a secondary EAL
	// process share. Their devices need different names.
	NetMPRing     = "net_mpring"
	NetMPRingPeer = "net_mpring_peer"
)

// MemifSocket is the file name of a net_memif server's socket.
const MemifSocket = "memif.sock"

// RingSocket is the file name of a NetMPRing's socket.
const RingSocket = "ring.sock"

// VhostSocket is the file name of a net_virtio_user server's socket.
const VhostSocket = "vhost.sock"

// RingSockets are the file names of the sockets of a NetMPRing's directory: its own, and the longest that EAL makes for
// its processes, each with a PID and a time.
var RingSockets = []string{RingSocket, "dpdk/" + sharedPrefix + "/mp_socket_4194304_ffffffffffffffff"}

// Socket is the file name of the socket at which the device listens or connects; "" if it has none.
func (v Vdev) Socket() string {
	switch v.Driver {
	case NetMemif:
		return MemifSocket
	case NetVirtioUser:
		return VhostSocket
	}
	return ""
}

// Vdev is how the application of a function attaches to a dpdk port.
type Vdev struct {
	Function string `json:"function"`
	Port     string `json:"port"`
	Driver   string `json:"driver"`
	// Options follow the device's name: "socket={dir}/memif.sock,role=server". {dir} is
	// replaced by the application's path of Dir.
	Options string `json:"options,omitempty"`
	// Dir is a host directory that the function must see; "" for none. A container sees
	// it at LinksInside/PORT. Before each start of the function, the end's own directory
	// (transport.End.Dir) is emptied; other directories are left alone.
	Dir string `json:"dir,omitempty"`
	// Clears says that the function creates everything in Dir. All of it is removed
	// before each start of its command: an old user keeps what it has open, and finds
	// no new peer there.
	Clears bool `json:"clears,omitempty"`
	// ReadOnly says that the function changes nothing in Dir: it connects to a socket
	// that another process makes there.
	ReadOnly bool `json:"read_only,omitempty"`
	// Awaits is the name of a socket in Dir that the other end makes; the device
	// connects to it once, at its start. The command starts when the socket has a
	// listener. It is stopped as failed when the connection closes.
	Awaits string `json:"awaits,omitempty"`
	// EndsWithLink says that the device finds no new process of its link once one has
	// ended. Its command is then stopped as failed, and starts when they run again.
	EndsWithLink bool `json:"ends_with_link,omitempty"`
	// Peer is the host directory of the socket Awaits, if a container may not write to
	// it: then it sees it, read-only, at PeersInside/PORT, and in Dir a symbolic link
	// to the socket.
	Peer string `json:"peer,omitempty"`
	// PeerConnects says that another function's user connects to a socket that this
	// function makes in Dir. Its command starts with umask 0, since nobody else can
	// reach Dir.
	PeerConnects bool `json:"peer_connects,omitempty"`
	// Capabilities are needed by the application in the host's user namespace, such as
	// "CAP_NET_ADMIN". Only transports that a chain must permit have any.
	Capabilities []string `json:"capabilities,omitempty"`
	// SingleFileSegments: EAL needs --single-file-segments, since the device passes its
	// memory to another process.
	SingleFileSegments bool `json:"single_file_segments,omitempty"`
	// NeedsFile says that the device of another driver needs DriverFile too: net_memif, with
	// frames longer than it says it takes.
	NeedsFile bool `json:"needs_file,omitempty"`
	// Interface says that the function is a VM that has the device: its kernel, or with
	// the face dpdk an application. The fields above are then the host's side. nil: no
	// VM.
	Interface *Interface `json:"interface,omitempty"`
	// PCI is the device's address, "0000:00:1e.0", if an application in the VM has it.
	// The runtime sets it; "": it is on no bus.
	PCI string `json:"pci,omitempty"`
}

// Inside is the container's path of Dir.
func (v Vdev) Inside() string { return filepath.Join(LinksInside, v.Port) }

// PeerInside is the container's path of Peer.
func (v Vdev) PeerInside() string { return filepath.Join(PeersInside, v.Port) }

// SocketDir is the host directory of the device's socket.
func (v Vdev) SocketDir() string { return cmp.Or(v.Peer, v.Dir) }

// ReachedAt is the host's path by which a program reaches sockets in SocketDir.
func (v Vdev) ReachedAt() string {
	if v.Shared() {
		return sockpath.Dir(v.SocketDir(), RingSockets...)
	}
	return sockpath.Dir(v.SocketDir(), v.Socket())
}

// Shared reports whether the application is one of two that share all EAL memory: a
// primary process (NetMPRing) or a secondary one.
func (v Vdev) Shared() bool { return v.Driver == NetMPRing || v.Driver == NetMPRingPeer }
