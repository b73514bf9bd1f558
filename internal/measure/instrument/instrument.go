// SPDX-License-Identifier: Apache-2.0

// Package instrument runs measuring programs of the host inside the network
// namespaces and cgroups of two functions, and turns their output into records.
package instrument

import (
	"context"
	"net/netip"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Endpoint is a port of a function, as an instrument sees it.
type Endpoint struct {
	Name  string // "function.port"
	Place host.Place
	IP    netip.Addr // not valid: a native port without an address
	MAC   string
	MTU   int    // bytes of L3 packet
	Port  string // the port's name: that of its interface, or of its socket
	// Guest is the directory of the virtual machine that the port is in (package
	// guest): programs then run there. Empty: the port is in Place.
	Guest string
	// Native says that the port is libdray's, and no interface; Ports is then the
	// directory on the host that holds its socket.
	Native bool
	Ports  string
	// EAL is set if the port is a device of a DPDK application: the arguments
	// with which a program of the host finds that device, and no other of the
	// function's, under the name Device ("net_memif0").
	EAL    []string
	Device string
	// RuntimeDir is where EAL of such a program keeps its files.
	RuntimeDir string
}

// scoped is an address as a program at this endpoint has to write it: one of link
// scope with the interface.
func (e Endpoint) scoped(ip netip.Addr) netip.Addr {
	if e.framed() || !ip.Is6() || !ip.IsLinkLocalUnicast() {
		return ip
	}
	return ip.WithZone(e.Port)
}

// env is what a program at this endpoint finds its native or dpdk port by.
func (e Endpoint) env() []string {
	switch {
	case e.Native:
		return []string{"DRAY_PORTS=" + e.Ports}
	case e.Device != "":
		return []string{dpdk.RuntimeVariable + "=" + e.RuntimeDir}
	}
	return nil
}

// Params says what to measure. Each instrument uses the fields that its doc
// comment names.
type Params struct {
	Duration    time.Duration  // of the measured interval
	Load        uint64         // bit/s of UDP payload that run beside it, in the same direction; 0: none
	Bitrate     uint64         // bit/s of UDP payload to offer
	PacketRate  uint64         // frames per second to offer: the smallest, or those of Frame
	MessageRate uint64         // requests per second of a ping-pong, or probes
	MTU         int            // bytes of L3 packet that must pass
	Frame       int            // bytes of each frame without FCS; 0: IMIX in a matrix, and else what fills the MTU
	Busy        bool           // both ends may keep a CPU busy
	Poll        bool           // the receiver of a native port may keep a CPU busy
	Encap       *Encapsulation // around frames; nil: none
}

// Instrument is one measuring program.
type Instrument interface {
	// Name is the program's.
	Name() string
	// Probe reports whether this host has the program, and its version.
	Probe(ctx context.Context) inventory.Item
	// Run measures from one endpoint to the other, and leaves no process
	// behind however it ends. It fills the fields of the trial that the
	// measurement decides: Quantity, Instrument, Load, From, To, Start,
	// Duration, Marks, Raw and the result; also beside an error, as far as
	// they are known.
	Run(ctx context.Context, from, to Endpoint, p Params) (record.Trial, error)
}

// All is every instrument.
func All() []Instrument {
	return []Instrument{Draygen{record.QStream}, Iperf3{}, Iperf{}, Sockperf{}, Qperf{}, Ping{}}
}

// begin is the trial of a quantity before anything has run.
func begin(q record.Quantity, from, to Endpoint) record.Trial {
	return record.Trial{Quantity: q, From: from.Name, To: to.Name, Marks: []string{}}
}

// placement says where the program of an endpoint runs.
func placement(e Endpoint) string {
	if e.machine() {
		return "host program inside the function's virtual machine"
	}
	where := "host program in the function's network namespace"
	if e.Place.Cgroup.Path == "" {
		return where
	}
	return where + " and cgroup"
}

// describe is the record's account of a session with the tool.
func describe(t tool, version string, s session) record.Instrument {
	server := append([]string{}, s.server...) // never null in a record
	return record.Instrument{Name: t.name, Version: version, Client: s.client, Server: server, Placement: placement(s.from)}
}
