// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/drayage/dray/internal/spec/inventory"
)

// statedDefault is the source of every figure in this file.
const statedDefault = "stated default"

// statedFrame is the frame length of UDPBitrate, in bytes with FCS.
const statedFrame = 1518

// statedDefaults replace missing calibration records. They should hold on a modest
// host, so each is well on the safe side of its source:
//
//   - Latency is a full round trip, because sockets can prove nothing less of one-way
//     latency. UDP over a veth pair takes 52 µs at the median and 86 µs at p99 on a
//     two-core virtual machine. The figures leave its scheduler a factor of two at
//     p99. In the tail they leave milliseconds, because a softirq may wait for a whole
//     scheduling period. A published round trip through a bridge or Open vSwitch is
//     0.29 ms on a 100 Mb/s link (N16).
//   - TCPBitrate is for one stream: 15 Gb/s over veth, 12 through a bridge, 18.8 over
//     macvlan, 1 through Open vSwitch's userspace datapath on the same machine. The
//     figure is half of that or less. Transports without network interfaces have none.
//   - UDPBitrate is for datagrams in frames of 1,518 bytes. For sockets it is the
//     stated packet rate in such frames, less a third because longer copies get no
//     segment offload. On the same machine, veth reached 2.3 Gb/s with draygen while
//     the machine was busy, and 0.8 Gb/s with iperf3 -u.
//   - Packet rate is for a UDP socket: published 310 kpps over a veth pair (V19),
//     240 kpps on the same machine. The figure is half of the smaller one.
//   - Shared memory: libdray moves 70 million packets/s of 64 B one way and takes half
//     a microsecond for a round trip between two polling ends of the same machine
//     (dataplane/port/README.md). The figures are for ends that sleep when idle and
//     share their CPUs. They rest on a socket wake-up at the median, the scheduler
//     beyond p99, and the highest rate of a paced generator, not of the link.
//   - User-space switches: on the same machine, testpmd with its own CPU between two
//     virtio-user ends passes 16 million packets/s, Open vSwitch with DPDK 12.7. The
//     figures are for ends and switch that share CPUs: there a poller waits for the
//     scheduler, not for packets.
//   - Unmeasured values (loopback, af-packet, loss, variation, and delay beyond p99)
//     are orders of magnitude.
//
// No default states a percentile beyond p99.99: nothing bounds the scheduler there.
var statedDefaults = tabulate([]statedRow{
	// Transport, latencies in µs, UDP and TCP bit/s, packets/s, loss, variation in µs.
	{"shm", [4]int{30, 100, 500, 2000}, 10e9, 0, 1e6, 1e-6, 100},
	// The kernel copies at each end; it reached 100,000 packets/s on a busy machine.
	{"af-xdp", [4]int{200, 500, 2000, 5000}, 400e6, 500e6, 50e3, 1e-4, 500},
	// As shm: between two polling applications on the same machine, DPDK's memif
	// moved 6 to 27 million packets/s of 64 B.
	{"memif", [4]int{30, 100, 500, 2000}, 5e9, 0, 1e6, 1e-6, 100},
	// As memif, whose data path has one copy more.
	{"dpdk-ring", [4]int{30, 100, 500, 2000}, 5e9, 0, 1e6, 1e-6, 100},
	// A thread that polls both ends and copies.
	{"vhost-user", [4]int{30, 200, 1000, 5000}, 5e9, 0, 1e6, 1e-5, 200},
	// As vhost-user, with a flow table.
	{"ovs-dpdk", [4]int{40, 250, 1500, 5000}, 4e9, 0, 700e3, 1e-5, 250},
	// As ovs-dpdk, with other rings.
	{"ovs-dray", [4]int{40, 250, 1500, 5000}, 4e9, 0, 700e3, 1e-5, 250},
	{"loopback", [4]int{60, 120, 500, 2000}, 1100e6, 8e9, 150e3, 1e-5, 100},
	{"veth", [4]int{100, 200, 700, 2000}, 900e6, 7e9, 120e3, 1e-5, 150},
	{"macvlan", [4]int{110, 220, 800, 2000}, 850e6, 7e9, 110e3, 1e-5, 170},
	// As macvlan, with a queue in between.
	{"macvtap", [4]int{110, 220, 800, 2000}, 850e6, 7e9, 110e3, 1e-5, 170},
	// As bridge, with the way to it and back.
	{"vepa", [4]int{150, 300, 1000, 3000}, 600e6, 5e9, 80e3, 1e-5, 250},
	{"bridge", [4]int{120, 250, 900, 3000}, 800e6, 6e9, 100e3, 1e-5, 200},
	// The userspace datapath on plain interfaces: a polling thread and two
	// system calls per packet.
	{"ovs", [4]int{300, 1000, 4000, 10000}, 300e6, 500e6, 40e3, 1e-4, 1000},
	// A bridge at each end, and the kernel's UDP between them.
	{"vxlan", [4]int{200, 500, 2000, 5000}, 450e6, 1500e6, 60e3, 1e-4, 400},
	// Open vSwitch's userspace datapath at each end.
	{"ovs-vxlan", [4]int{600, 2000, 8000, 20000}, 150e6, 200e6, 20e3, 1e-4, 2000},
	// As ovs-vxlan with DPDK, whose threads poll for the applications' packets.
	{"ovs-dpdk-vxlan", [4]int{600, 2000, 8000, 20000}, 200e6, 0, 20e3, 1e-4, 2000},
	// A process that copies each frame between two packet sockets.
	{"af-packet", [4]int{200, 500, 2000, 5000}, 400e6, 500e6, 50e3, 1e-4, 500},
})

// statedRow is a transport's stated defaults; a rate of 0 is none.
type statedRow struct {
	transport         string
	latency           [4]int // µs, at statedPercentiles
	udp, tcp, packets uint64
	loss              float64
	variation         int // µs, at p99
}

var statedPercentiles = [4]float64{50, 99, 99.9, 99.99}

func tabulate(rows []statedRow) map[string]inventory.Calibration {
	all := map[string]inventory.Calibration{}
	for _, r := range rows {
		c := inventory.Calibration{
			UDPBitrate: r.udp, TCPBitrate: r.tcp, PacketRate: r.packets,
			LossRatio: r.loss, PDVp99: time.Duration(r.variation) * time.Microsecond,
		}
		for i, p := range statedPercentiles {
			c.Latency = append(c.Latency, inventory.LatencyPoint{Percentile: p, Latency: time.Duration(r.latency[i]) * time.Microsecond})
		}
		all[r.transport] = c
	}
	return all
}
