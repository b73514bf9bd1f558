// SPDX-License-Identifier: Apache-2.0

// Package dpdk says how a DPDK application attaches to the ports of a function
// with the face dpdk: the arguments of its environment abstraction layer (EAL).
package dpdk

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
	// A container sees it at LinksInside/PORT.
	Dir string `json:"dir,omitempty"`
	// ReadOnly says that the function changes nothing in Dir: it connects to a
	// socket that somebody else makes there.
	ReadOnly bool `json:"read_only,omitempty"`
	// SingleFileSegments: EAL needs --single-file-segments, since the device
	// hands its memory to somebody else.
	SingleFileSegments bool `json:"single_file_segments,omitempty"`
}
