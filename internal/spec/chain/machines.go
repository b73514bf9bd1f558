// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"time"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// Machine is the resources of a host, so that the planner can place functions on it.
type Machine struct {
	Name string     `json:"name"`
	NUMA []NUMANode `json:"numa"` // at least one

	// Site is where a node of a cluster is. A function may name it in place of the node as its
	// host. Chain files have no sites.
	Site string         `json:"-"`
	Pos  parse.Position `json:"-"`
}

// NUMANode is CPUs that share memory.
type NUMANode struct {
	CPUs   CPURequest  `json:"cpus"`
	Memory units.Bytes `json:"memory,omitempty"` // 0: as much as is asked for
}

// HostLine joins two hosts with machines. In a cluster, it may end at a switch instead: a name
// that no host has.
type HostLine struct {
	Between []string       `json:"between"`          // two hosts
	Rate    units.Bitrate  `json:"rate,omitempty"`   // in each direction; 0: no limit
	Delay   units.Duration `json:"delay,omitempty"`  // one way, without that of the fibre
	Length  units.Length   `json:"length,omitempty"` // of the fibre

	Pos parse.Position `json:"-"`
}

// FibreDelay is the one-way delay of a metre of optical fibre: 5 µs for a kilometre, with
// an index of refraction of 1.5.
const FibreDelay = 5 * time.Nanosecond

// OneWay is the delay of the line, with that of its fibre.
func (l HostLine) OneWay() time.Duration {
	return time.Duration(l.Delay) + time.Duration(l.Length)*FibreDelay
}

// SimulatedDelay is OneWay in the resolution of tc(8).
func (l HostLine) SimulatedDelay() time.Duration { return l.OneWay().Round(time.Microsecond) }

// MaxMachines is the maximum number of hosts with resources of a chain.
const MaxMachines = 64

// Lined reports whether lines join the hosts, each with a rate and a delay of its own, in
// place of an underlay that is the same for all. False for nil.
func (h *Hosts) Lined() bool { return h != nil && len(h.Lines) > 0 }
