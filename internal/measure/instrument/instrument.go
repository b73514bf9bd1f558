// SPDX-License-Identifier: Apache-2.0

// Package instrument runs the host's measuring programs inside the network
// namespaces and cgroups of two functions, and converts their output to records.
package instrument

import (
	"context"
	"net/netip"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Endpoint is a port of a function, as an instrument sees it.
type Endpoint struct {
	Name  string // "function.port"
	Place host.Place
	IP    netip.Addr // invalid: a native port without an address
	MAC   string
	MTU   int    // bytes of L3 packet
	Port  string // the port's name: its interface or its socket
	// Guest is the directory of the port's virtual machine (package guest): programs
	// then run there. Empty: the port is in Place.
	Guest string
	// Far is set if the port is on another machine.
	Far *Far
	// Native means a libdray port instead of an interface; Ports is then the host
	// directory that holds its socket.
	Native bool
	Ports  string
	// EAL is set if the port is a DPDK application's device. With these arguments a
	// host program finds that device, and no other of the function, under the name
	// Device ("net_memif0"). A program of another machine is started with them there.
	EAL    []string
	Device string
	// RuntimeDir is EAL's directory for such a program.
	RuntimeDir string
}

// scoped is an address as a program at this endpoint must write it: with the
// interface if it is link-local.
func (e Endpoint) scoped(ip netip.Addr) netip.Addr {
	if e.framed() || !ip.Is6() || !ip.IsLinkLocalUnicast() {
		return ip
	}
	return ip.WithZone(e.Port)
}

// env tells a program at this endpoint where its native or dpdk port is.
func (e Endpoint) env() []string {
	switch {
	case e.Native && e.machine():
		return []string{"DRAY_PORTS=" + runtime.PortsInside}
	case e.Native:
		return []string{"DRAY_PORTS=" + e.Ports}
	case e.Device != "":
		return []string{dpdk.RuntimeVariable + "=" + e.RuntimeDir}
	}
	return nil
}

// Params are what to measure. Each instrument uses the fields named in its doc
// comment.
type Params struct {
	Duration    time.Duration  // of the measured interval
	Load        uint64         // bit/s of UDP payload in the background, in the same direction; 0: none
	Bitrate     uint64         // bit/s of UDP payload to offer
	PacketRate  uint64         // frames per second to offer: the smallest, or of length Frame
	MessageRate uint64         // requests per second of a ping-pong, or probes
	MTU         int            // bytes of L3 packet that must pass
	Frame       int            // bytes of each frame without FCS; 0: IMIX in a matrix, else MTU-sized
	Batch       int            // the most packets in one system call at interfaces; 0: as many as are due
	Message     int            // bytes of each datagram or write; 0: the instrument's own
	Buffer      int            // bytes asked for each socket buffer; 0: the kernel's own
	Busy        bool           // both ends may keep a CPU busy
	Poll        bool           // the receiver of a native port may keep a CPU busy
	Encap       *Encapsulation // encapsulation of frames; nil: none
	NextHop     string         // MAC of the port that takes the packets, if functions pass them on to the receiver; empty: none do
	DSCP        int            // of the stream's packets (RFC 2474)
	Bulk        *Bulk          // a second stream from the same sender; nil: none
	Slots       chain.SlotLoad // the stream's load; nil: Bitrate
	// Opened is called when both ports of a stream are open, before its first packet. If it fails none is sent. nil: nothing.
	Opened func(context.Context) error
}

// Instrument is one measuring program.
type Instrument interface {
	// Name is the program's name.
	Name() string
	// Probe reports whether this host has the program, and its version.
	Probe(ctx context.Context) inventory.Item
	// Run measures from one endpoint to the other, and never leaves a process behind.
	// It fills in the trial's measured fields: Quantity, Instrument, Load, From, To,
	// Start, Duration, Marks, Raw and the result. On error it fills in those that are
	// known.
	Run(ctx context.Context, from, to Endpoint, p Params) (record.Trial, error)
}

// All is every instrument.
func All() []Instrument {
	return []Instrument{Draygen{record.QStream}, Iperf3{}, Iperf{}, Sockperf{}, Qperf{}, Ping{}}
}

// begin is a quantity's trial before any program has run.
func begin(q record.Quantity, from, to Endpoint) record.Trial {
	return record.Trial{Quantity: q, From: from.Name, To: to.Name, Marks: []string{}}
}

// placement describes where an endpoint's program runs.
func placement(e Endpoint) string {
	if e.Far != nil {
		return "in place of the function, on " + e.Far.Machine
	}
	if e.machine() {
		return "host program inside the function's virtual machine"
	}
	where := "host program in the function's network namespace"
	if e.Place.Cgroup.Path == "" {
		return where
	}
	return where + " and cgroup"
}

// describe is the record of a run of the tool.
func describe(t tool, version string, s clientServer) record.Instrument {
	server := append([]string{}, s.server...) // never null in a record
	return record.Instrument{Name: t.name, Version: version, Client: s.client, Server: server, Placement: placement(s.from)}
}
