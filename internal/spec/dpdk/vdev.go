// SPDX-License-Identifier: Apache-2.0

// Package dpdk says how a DPDK application attaches to the ports of a function
// with the face dpdk: the arguments of its environment abstraction layer (EAL).
package dpdk

import "path/filepath"

// LinksInside is where a container finds the directories of its dpdk ports, one
// named as each port that has one.
const LinksInside = "/run/dray/links"

// LibInside is where a container finds the folder of the driver net_dray.
const LibInside = "/run/dray/lib"

// The drivers that a Vdev may name, and the words that devices are called by:
// the driver's name and a number.
const (
	NetDray       = "net_dray"
	NetVirtioUser = "net_virtio_user"
	NetMemif      = "net_memif"
	NetRing       = "net_ring"
	NetAFXDP      = "net_af_xdp"
	NetVirtio     = "net_virtio" // on a machine's PCI bus
	// The two ends of a pair of rings in memory that a primary and a secondary
	// process of EAL share. Their devices need different names.
	NetMPRing     = "net_mpring"
	NetMPRingPeer = "net_mpring_peer"
)

// Vdev is how the application of a function with a dpdk port attaches to it.
type Vdev struct {
	Function string `json:"function"`
	Port     string `json:"port"`
	Driver   string `json:"driver"`
	// Options follow the device's name: "socket={dir}/memif.sock,role=server".
	// {dir} stands for Dir as that application sees it.
	Options string `json:"options,omitempty"`
	// Dir is a directory on the host that the function must see; "" for none.
	// A container sees it at LinksInside/PORT. Sockets that an earlier instance
	// left in the end's own directory (transport.End.Dir) are removed before each
	// start of the function; another directory is left as it is.
	Dir string `json:"dir,omitempty"`
	// Clears says that the function makes anew what is in Dir, all of which is
	// removed before each start of its command: whoever still uses it goes on with
	// what it has, and meets nobody there.
	Clears bool `json:"clears,omitempty"`
	// ReadOnly says that the function changes nothing in Dir: it connects to a
	// socket that somebody else makes there.
	ReadOnly bool `json:"read_only,omitempty"`
	// Awaits is the name of a socket in Dir that the other end makes: the device
	// connects to it once, as it starts. The command is started when somebody
	// listens there, and is stopped as failed when the connection is gone.
	Awaits string `json:"awaits,omitempty"`
	// PeerConnects says that the user of another function connects to a socket
	// that this one makes in Dir, where nobody else gets: its command starts with
	// the umask 0.
	PeerConnects bool `json:"peer_connects,omitempty"`
	// Capabilities are those that the application needs in the host's user
	// namespace, such as "CAP_NET_ADMIN"; none but for transports that a chain
	// must permit.
	Capabilities []string `json:"capabilities,omitempty"`
	// SingleFileSegments: EAL needs --single-file-segments, since the device
	// hands its memory to somebody else.
	SingleFileSegments bool `json:"single_file_segments,omitempty"`
	// Interface says that the function is a virtual machine, which has the device:
	// its kernel, or with the face dpdk an application. The fields above are then the
	// host's part of it. nil: it is none.
	Interface *Interface `json:"interface,omitempty"`
	// PCI is the address of that device if an application in the machine has it:
	// "0000:00:1e.0". The runtime gives it; "": it is on no bus.
	PCI string `json:"pci,omitempty"`
}

// Inside is where a container sees Dir.
func (v Vdev) Inside() string { return filepath.Join(LinksInside, v.Port) }

// Shared reports whether the application is one of two that share all of EAL's
// memory: a primary process (NetMPRing) or a secondary one.
func (v Vdev) Shared() bool { return v.Driver == NetMPRing || v.Driver == NetMPRingPeer }
