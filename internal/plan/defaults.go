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
var statedDefaults = map[string]inventory.Calibration{
	"shm": {
		Latency:    latencies(30*time.Microsecond, 100*time.Microsecond, 500*time.Microsecond, 2*time.Millisecond),
		UDPBitrate: 10e9,
		PacketRate: 1e6,
		LossRatio:  1e-6,
		PDVp99:     100 * time.Microsecond,
	},
	// The kernel copies at each end; it reached 100,000 packets/s on a busy machine.
	"af-xdp": {
		Latency:    latencies(200*time.Microsecond, 500*time.Microsecond, 2*time.Millisecond, 5*time.Millisecond),
		UDPBitrate: 400e6,
		TCPBitrate: 500e6,
		PacketRate: 50e3,
		LossRatio:  1e-4,
		PDVp99:     500 * time.Microsecond,
	},
	// As shm: between two polling applications on the same machine, DPDK's memif
	// moved 6 to 27 million packets/s of 64 B.
	"memif": {
		Latency:    latencies(30*time.Microsecond, 100*time.Microsecond, 500*time.Microsecond, 2*time.Millisecond),
		UDPBitrate: 5e9,
		PacketRate: 1e6,
		LossRatio:  1e-6,
		PDVp99:     100 * time.Microsecond,
	},
	// As memif, whose data path has one copy more.
	"dpdk-ring": {
		Latency:    latencies(30*time.Microsecond, 100*time.Microsecond, 500*time.Microsecond, 2*time.Millisecond),
		UDPBitrate: 5e9,
		PacketRate: 1e6,
		LossRatio:  1e-6,
		PDVp99:     100 * time.Microsecond,
	},
	// A thread that polls both ends and copies.
	"vhost-user": {
		Latency:    latencies(30*time.Microsecond, 200*time.Microsecond, 1*time.Millisecond, 5*time.Millisecond),
		UDPBitrate: 5e9,
		PacketRate: 1e6,
		LossRatio:  1e-5,
		PDVp99:     200 * time.Microsecond,
	},
	// As vhost-user, with a flow table.
	"ovs-dpdk": {
		Latency:    latencies(40*time.Microsecond, 250*time.Microsecond, 1500*time.Microsecond, 5*time.Millisecond),
		UDPBitrate: 4e9,
		PacketRate: 700e3,
		LossRatio:  1e-5,
		PDVp99:     250 * time.Microsecond,
	},
	// As ovs-dpdk, with other rings.
	"ovs-dray": {
		Latency:    latencies(40*time.Microsecond, 250*time.Microsecond, 1500*time.Microsecond, 5*time.Millisecond),
		UDPBitrate: 4e9,
		PacketRate: 700e3,
		LossRatio:  1e-5,
		PDVp99:     250 * time.Microsecond,
	},
	"loopback": {
		Latency:    latencies(60*time.Microsecond, 120*time.Microsecond, 500*time.Microsecond, 2*time.Millisecond),
		UDPBitrate: 1100e6,
		TCPBitrate: 8e9,
		PacketRate: 150e3,
		LossRatio:  1e-5,
		PDVp99:     100 * time.Microsecond,
	},
	"veth": {
		Latency:    latencies(100*time.Microsecond, 200*time.Microsecond, 700*time.Microsecond, 2*time.Millisecond),
		UDPBitrate: 900e6,
		TCPBitrate: 7e9,
		PacketRate: 120e3,
		LossRatio:  1e-5,
		PDVp99:     150 * time.Microsecond,
	},
	"macvlan": {
		Latency:    latencies(110*time.Microsecond, 220*time.Microsecond, 800*time.Microsecond, 2*time.Millisecond),
		UDPBitrate: 850e6,
		TCPBitrate: 7e9,
		PacketRate: 110e3,
		LossRatio:  1e-5,
		PDVp99:     170 * time.Microsecond,
	},
	// As macvlan, with a queue in between.
	"macvtap": {
		Latency:    latencies(110*time.Microsecond, 220*time.Microsecond, 800*time.Microsecond, 2*time.Millisecond),
		UDPBitrate: 850e6,
		TCPBitrate: 7e9,
		PacketRate: 110e3,
		LossRatio:  1e-5,
		PDVp99:     170 * time.Microsecond,
	},
	"bridge": {
		Latency:    latencies(120*time.Microsecond, 250*time.Microsecond, 900*time.Microsecond, 3*time.Millisecond),
		UDPBitrate: 800e6,
		TCPBitrate: 6e9,
		PacketRate: 100e3,
		LossRatio:  1e-5,
		PDVp99:     200 * time.Microsecond,
	},
	// The userspace datapath on plain interfaces: a polling thread and two
	// system calls per packet.
	"ovs": {
		Latency:    latencies(300*time.Microsecond, 1*time.Millisecond, 4*time.Millisecond, 10*time.Millisecond),
		UDPBitrate: 300e6,
		TCPBitrate: 500e6,
		PacketRate: 40e3,
		LossRatio:  1e-4,
		PDVp99:     1 * time.Millisecond,
	},
	// A bridge at each end, and the kernel's UDP between them.
	"vxlan": {
		Latency:    latencies(200*time.Microsecond, 500*time.Microsecond, 2*time.Millisecond, 5*time.Millisecond),
		UDPBitrate: 450e6,
		TCPBitrate: 1500e6,
		PacketRate: 60e3,
		LossRatio:  1e-4,
		PDVp99:     400 * time.Microsecond,
	},
	// Open vSwitch's userspace datapath at each end.
	"ovs-vxlan": {
		Latency:    latencies(600*time.Microsecond, 2*time.Millisecond, 8*time.Millisecond, 20*time.Millisecond),
		UDPBitrate: 150e6,
		TCPBitrate: 200e6,
		PacketRate: 20e3,
		LossRatio:  1e-4,
		PDVp99:     2 * time.Millisecond,
	},
	// As ovs-vxlan with DPDK, whose threads poll for the applications' packets.
	"ovs-dpdk-vxlan": {
		Latency:    latencies(600*time.Microsecond, 2*time.Millisecond, 8*time.Millisecond, 20*time.Millisecond),
		UDPBitrate: 200e6,
		PacketRate: 20e3,
		LossRatio:  1e-4,
		PDVp99:     2 * time.Millisecond,
	},
	// A process that copies each frame between two packet sockets.
	"af-packet": {
		Latency:    latencies(200*time.Microsecond, 500*time.Microsecond, 2*time.Millisecond, 5*time.Millisecond),
		UDPBitrate: 400e6,
		TCPBitrate: 500e6,
		PacketRate: 50e3,
		LossRatio:  1e-4,
		PDVp99:     500 * time.Microsecond,
	},
}

func latencies(p50, p99, p999, p9999 time.Duration) []inventory.LatencyPoint {
	return []inventory.LatencyPoint{
		{Percentile: 50, Latency: p50},
		{Percentile: 99, Latency: p99},
		{Percentile: 99.9, Latency: p999},
		{Percentile: 99.99, Latency: p9999},
	}
}
