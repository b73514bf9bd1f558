// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"fmt"
	"os"
	"os/exec"
)

// sizes are frame lengths in bytes.
var sizes = [2]int{64, 1518}

// copySizes are around the size from which copying costs more. The receiver does not
// read its frames: the worst case for a copy.
var copySizes = [2]int{64, 256}

// Groups of figures.
const (
	groupNative   = "native: one direction between two generators, without DPDK, a core each"
	groupTrip     = "round trip of one frame of 64 B between two DPDK applications, a core each, p50"
	groupSwitch   = "Open vSwitch with DPDK on a core, the generator at both ends on another, both directions, 64 B"
	groupForward  = "dray-vnf l2fwd over net_dray on a core, the generator at both ends on another, both directions, 64 B"
	groupCycles   = "dray-vnf l2fwd over net_dray, cycles of a packet"
	groupCost     = "CPU time of a frame, both ends and the application on one core"
	groupCopies   = "reception copied and in place, testpmd txonly to rxonly"
	groupPhysical = "the current physical limit"
)

func groupTestpmd(size int) string {
	return fmt.Sprintf("testpmd txonly to rxonly, %d B, a core each", size)
}

// Ways between two applications.
const (
	wayDray = iota
	wayCopy
	wayBound
	wayMemif
	wayMemifZero
	wayVhost
	wayVhostBack
)

var ways = []way{
	wayDray: {name: "net_dray", sender: "--vdev net_dray0,port=a,dir={d}", receiver: "--vdev net_dray0,port=b,dir={d}"},
	wayCopy: {name: "net_dray, rx=copy", sender: "--vdev net_dray0,port=a,dir={d}", receiver: "--vdev net_dray0,port=b,dir={d},rx=copy"},
	// The data room of the link's buffers: otherwise none is bound.
	wayBound: {name: "net_dray, sent from its own pool", sender: "--vdev net_dray0,port=a,dir={d} --mbuf-pool-ops-name dray",
		receiver: "--vdev net_dray0,port=b,dir={d}", application: "--mbuf-size=1664"},
	wayMemif: {name: "net_memif", sender: "--vdev net_memif0,role=client,socket-abstract=no,socket={d}/s",
		receiver: "--vdev net_memif0,role=server,socket-abstract=no,socket={d}/s"},
	wayMemifZero: {name: "net_memif, zero-copy", sender: "--vdev net_memif0,role=client,zero-copy=yes,socket-abstract=no,socket={d}/s",
		receiver: "--vdev net_memif0,role=server,socket-abstract=no,socket={d}/s"},
	wayVhost: {name: "net_virtio_user to net_vhost", sender: "--vdev net_virtio_user0,path={d}/s,queues=1,mac=02:00:00:00:00:01",
		receiver: "--vdev net_vhost0,iface={d}/s,queues=1"},
	wayVhostBack: {name: "net_vhost to net_virtio_user", sender: "--vdev net_vhost0,iface={d}/s,queues=1,client=1",
		receiver: "--vdev net_virtio_user0,path={d}/s,queues=1,server=1,mac=02:00:00:00:00:02", waits: true},
}

var nullWay = way{name: "net_null, sending alone", sender: "--vdev net_null0"}

var copyWays = [2]way{
	{name: "copied", sender: "--vdev net_dray0,port=a,dir={d}", receiver: "--vdev net_dray0,port=b,dir={d},rx=copy"},
	{name: "in place", sender: "--vdev net_dray0,port=a,dir={d}", receiver: "--vdev net_dray0,port=b,dir={d},rx-copy-max=0"},
}

// ceilings are rates of the generator without a link, sending and receiving each
// size: it stamps, sums up and judges each packet.
var ceilings = []struct{ name, role string }{
	{"draygen sending to a null port, 64 B", "send --rate max --size 64"},
	{"draygen sending to a null port, 1518 B", "send --rate max --size 1518"},
	{"draygen receiving from a null port, 64 B", "sink --size 64"},
	{"draygen receiving from a null port, 1518 B", "sink --size 1518"},
}

// start starts and pauses all pairs, and makes the figures in table order.
func (r *dpdkRows) start() {
	r.copied = r.figures.Figure(groupNative, "memcpy of 64 B on one core, in its caches", "packets/s")
	r.startTestpmds()
	r.startAllTrips()
	r.startGenerators()
	r.startBetween()
	r.startPhysical()
}

// pairOr starts a pair if there is time and no program is missing.
func (r *dpdkRows) pairOr(start func() *pair, programs ...string) *pair {
	t := &pair{}
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil && t.why == "" {
			t.why = "there is no " + program
		}
	}
	if t.why == "" && r.late() {
		t.why = "no time was left to start it"
	}
	if t.why == "" {
		t = start()
	}
	r.pairs = append(r.pairs, t)
	return t
}

func (r *dpdkRows) startTestpmds() {
	testpmd := func(w way) *pair { return r.pairOr(func() *pair { return r.startTestpmd(w) }, "dpdk-testpmd") }
	rate := func(t *pair, group, name string, size int, of *Figure) dpdkRow {
		f := r.figures.Figure(group, fmt.Sprintf("%s, %d B", name, size), "packets/s").Of(of)
		return dpdkRow{f, t, func(t *pair) float64 { return r.testpmdRate(t, size) }}
	}
	null := testpmd(nullWay)
	for i, size := range sizes {
		r.null[i] = []dpdkRow{rate(null, groupTestpmd(size), nullWay.name, size, nil)}
	}
	for _, w := range ways {
		t := testpmd(w)
		for i, size := range sizes {
			r.ways[i] = append(r.ways[i], rate(t, groupTestpmd(size), w.name, size, r.null[i][0].figure))
		}
	}
	pairs := [2]*pair{testpmd(copyWays[0]), testpmd(copyWays[1])}
	for i, size := range copySizes {
		copied := rate(pairs[0], groupCopies, copyWays[0].name, size, nil)
		r.copies[i] = []dpdkRow{copied, rate(pairs[1], groupCopies, copyWays[1].name, size, copied.figure)}
	}
}

func (r *dpdkRows) startAllTrips() {
	for _, w := range ways {
		t := r.pairOr(func() *pair { return r.startTrips(w) }, r.Trips)
		f := r.figures.Figure(groupTrip, w.name+", round trip, 64 B", "ns")
		r.trips = append(r.trips, dpdkRow{f, t, r.medianTrip})
	}
}

func (r *dpdkRows) startGenerators() {
	row := func(name string, of *Figure, start func() *pair) dpdkRow {
		f := r.figures.Figure(groupNative, name, "packets/s").Of(of)
		return dpdkRow{f, r.pairOr(start, r.Generator), r.generatorRate}
	}
	for _, c := range ceilings {
		r.ceilings = append(r.ceilings, row(c.name, r.copied, func() *pair { return r.startCeiling(c.role) }))
	}
	for i, size := range sizes {
		name := fmt.Sprintf("draygen, %d B", size)
		r.native = append(r.native, row(name, r.ceilings[i].figure, func() *pair { return r.startNative(size) }))
	}
}

func (r *dpdkRows) startBetween() {
	for _, s := range []struct{ kind, name string }{{"dray", "net_dray ports"}, {"vhost", "vhost-user ports"}} {
		t := r.pairOr(func() *pair { return r.startSwitch(s.kind) }, r.Generator)
		r.switches = append(r.switches, dpdkRow{r.figures.Figure(groupSwitch, s.name, "packets/s"), t, r.generatorRate})
	}
	for i, name := range []string{"a plain process", "in a container"} {
		t := r.pairOr(func() *pair { return r.startForward(i == 1) }, r.Generator, r.VNF)
		r.forwards = append(r.forwards, dpdkRow{figure: r.figures.Figure(groupForward, name, "packets/s"), pair: t})
		r.cycles = append(r.cycles, r.figures.Figure(groupCycles, name+", 64 B", "cycles"))
	}
}

func (r *dpdkRows) startPhysical() {
	r.ring = r.figures.Figure(groupPhysical, "bare ring, 64 B written and read", "packets/s")
	r.line = r.figures.Figure(groupPhysical, "a cache line to and fro", "ns")
	r.libdray = r.figures.Figure(groupNative, "libdray alone, headers made and read, 64 B", "packets/s").Of(r.ring)
	for _, row := range r.trips {
		row.figure.Of(r.line)
	}
	if _, err := os.Stat(r.Probe); err != nil {
		r.missingProbe("there is no " + r.Probe)
		return
	}
	p, err := startProbe(r.ctx, r.Probe)
	if err != nil {
		r.missingProbe(err.Error())
		return
	}
	r.probe = p
}

func (r *dpdkRows) missingProbe(why string) {
	r.libdray.Missing(why)
	r.copied.Missing(why)
}

func figuresOf(rows []dpdkRow) []*Figure {
	var all []*Figure
	for _, row := range rows {
		all = append(all, row.figure)
	}
	return all
}

// setTargets sets the target of each figure that has one.
func (r *dpdkRows) setTargets() {
	const bestPeer = "the best of memif and vhost-user"
	for i := range sizes {
		peer := best(figuresOf(r.ways[i][wayMemif:wayVhostBack+1]), false)
		dray := r.ways[i][wayDray].figure
		dray.AtLeast(1, peer, bestPeer)
		if i == 0 {
			dray.AtLeast(1.5, peer, "the same, hoped for")
			r.libdray.AtLeast(3, peer, bestPeer)
		}
		r.native[i].figure.AtLeast([]float64{3, 4}[i], peer, bestPeer)
	}
	r.native[0].figure.AtLeast(0.8, r.libdray, "libdray's own rate")
	r.ways[0][wayBound].figure.AtLeast(0.6, r.null[0][0].figure, "net_null")
	trip := r.trips[wayDray].figure
	trip.AtMost(0.5, best(figuresOf(r.trips[wayMemif:wayMemifZero+1]), true), "memif's round trip")
	trip.AtMost(0.333, best(figuresOf(r.trips[wayVhost:wayVhostBack+1]), true), "vhost-user's round trip")
	r.switches[0].figure.AtLeast(1, r.switches[1].figure, "vhost-user ports")
	r.forwards[1].figure.AtLeast(0.9, r.forwards[0].figure, "the plain process's rate")
	r.cycles[1].AtMost(1.1, r.cycles[0], "the plain process's cycles")
}
