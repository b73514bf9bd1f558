// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// The generator prints a line of counts each interval. The first lines of a measurement are
// skipped: the first includes the pause, and the next one begins during the first.
const (
	interval     = 50 * time.Millisecond
	skipped      = 2
	noPacket     = "no packet arrived, or a generator has ended"
	generatorEnd = 1000 * time.Second
)

func (p *place) generator(role string) []string {
	return slices.Concat([]string{p.Generator}, strings.Fields(role), []string{"--busy", "--peer-timeout", "10s", "--interval", interval.String()})
}

// onPort starts the generator on a libdray port, or on none.
func (p *place) onPort(t *pair, side int, port, role, name string) *process {
	argv := slices.Concat([]string{"env", "DRAY_PORTS=" + t.dir}, p.generator(role), []string{"--port", port})
	return t.start(argv, p.cpus[side], name)
}

// device is the name of the first device in EAL's arguments.
func device(devices string) string {
	_, name, _ := strings.Cut(devices, "--vdev ")
	return name[:strings.IndexAny(name+",", ", ")]
}

// startNative starts a generator and a sink on libdray's ports, without DPDK.
func (p *place) startNative(size int) *pair {
	t := p.newPair(1)
	t.receiver = p.onPort(t, receiveSide, "dray:b", "sink", "sink")
	if !t.started(p.ctx, t.receiver, `"ready"`, "the sink did not start") {
		return t
	}
	t.sender = p.onPort(t, sendSide, "dray:a", fmt.Sprintf("send --rate max --size %d", size), "send")
	p.awaitPackets(t, t.receiver)
	return t
}

// startCeiling starts a generator on a null port, which costs nothing.
func (p *place) startCeiling(role string) *pair {
	t := p.newPair(0)
	t.sender = p.onPort(t, sendSide, "null", role, "null")
	p.awaitPackets(t, t.sender)
	return t
}

// awaitPackets waits until a generator has counted packets, and pauses the pair.
// Printed intervals are not enough: a switch may not serve its ports yet. On a busy
// machine Open vSwitch took another third of a second for vhost-user ports, longer
// than a short measurement.
func (p *place) awaitPackets(t *pair, counts *process) {
	if t.why != "" {
		return
	}
	flows := func(log string) bool { return packetsOf(intervals(log)) > 0 }
	if !counts.await(p.ctx, 0, startWithin, flows) {
		t.fail("the generator did not start, or no packet arrived")
		return
	}
	t.pause()
}

// Devices of a generator with both ends.
const (
	drayBoth   = "--vdev net_dray0,port=a,dir={d} --vdev net_dray1,port=a,dir={e}"
	virtioBoth = "--vdev net_virtio_user0,path={d}/v1,server=1,queues=1,mac=02:00:00:00:00:01 " +
		"--vdev net_virtio_user1,path={d}/v2,server=1,queues=1,mac=02:00:00:00:00:02"
)

// startLoop starts the generator at both ends of the function in the middle.
func (p *place) startLoop(t *pair, devices, second string) {
	argv := append(p.generator("loop --both --rate max --size 64 --to-port dpdk:"+second), "--port", "dpdk:"+device(devices),
		"--eal", strings.Join(p.eal(t, sendSide, devices), " "))
	t.sender = t.start(argv, anyCPU, "loop")
	p.awaitPackets(t, t.sender)
}

// inNamespaces runs a command in its own namespaces; if its first process dies,
// all others die too.
func inNamespaces(more ...string) []string {
	return slices.Concat([]string{"unshare"}, more, []string{"--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "bash"})
}

// startSwitch puts Open vSwitch between two ports of the generator; kind is dray or vhost.
func (p *place) startSwitch(kind string) *pair {
	links, devices, second := 0, virtioBoth, "net_virtio_user1"
	if kind == "dray" {
		links, devices, second = 2, drayBoth, "net_dray1"
	}
	t := p.newPair(links)
	script := filepath.Join(p.Scripts, "switch.sh")
	t.between = t.start(append(inNamespaces("--net"), script, t.dir, kind, strconv.Itoa(p.cpus[receiveSide]), p.Driver), p.cpus[receiveSide], "switch")
	if t.started(p.ctx, t.between, "the switch is ready", "no Open vSwitch with DPDK, or it did not start") {
		p.startLoop(t, devices, second)
	}
	return t
}

// startForward puts dray-vnf l2fwd between them, as a process or in a container.
func (p *place) startForward(container bool) *pair {
	t := p.newPair(2)
	t.container = container
	argv := append([]string{p.VNF}, p.eal(t, receiveSide, "--vdev net_dray0,port=b,dir={d} --vdev net_dray1,port=b,dir={e}")...)
	argv = append(argv, "--", "l2fwd", "--duration", fmt.Sprintf("%.0fs", generatorEnd.Seconds()))
	otherwise := "dray-vnf did not start"
	if container {
		argv = slices.Concat(inNamespaces(), []string{filepath.Join(p.Scripts, "container.sh"), t.dir}, argv)
		otherwise = "no container, or dray-vnf did not start in it"
	}
	t.between = t.start(argv, p.cpus[receiveSide], "vnf")
	if t.started(p.ctx, t.between, `"ready"`, otherwise) {
		p.startLoop(t, drayBoth, "net_dray1")
	}
	return t
}

// counted is the generator's counts of an interval. A loop has two directions.
type counted struct {
	Draygen           int      `json:"draygen"`
	Event             string   `json:"event"`
	FromNS            float64  `json:"from_ns"`
	ToNS              float64  `json:"to_ns"`
	Sent              float64  `json:"sent"`
	Received          *float64 `json:"received"` // nil: it only sends
	Forward, Backward struct {
		Received float64 `json:"received"`
	}
}

func (c counted) packets() float64 {
	if c.Received != nil {
		return *c.Received
	}
	if sum := c.Forward.Received + c.Backward.Received; sum > 0 {
		return sum
	}
	return c.Sent
}

// intervals are the complete lines of a log with packet counts.
func intervals(log string) []counted {
	var all []counted
	for _, line := range strings.SplitAfter(log, "\n") {
		var c counted
		if strings.HasSuffix(line, "\n") && strings.HasPrefix(line, `{"draygen"`) && json.Unmarshal([]byte(line), &c) == nil && c.Event == "interval" {
			all = append(all, c)
		}
	}
	return all
}

func packetsOf(all []counted) (packets float64) {
	for _, c := range all {
		packets += c.packets()
	}
	return packets
}

// rateOf is the packet rate, per second, that a generator receives, or sends if it only
// sends; 0: it has ended, or nothing arrives. It waits until something has arrived: a
// thread briefly preempted by other work is no failure.
func (p *place) rateOf(g *process) float64 {
	return p.rateSince(g, g.logged())
}

// rateSince is the rate in the lines that its log has, or will have, after an offset.
func (p *place) rateSince(g *process, from int64) float64 {
	wanted := skipped + int(p.Window/interval)
	var all []counted
	arrived := g.await(p.ctx, from, answerWithin, func(log string) bool {
		all = intervals(log)
		return len(all) >= wanted && packetsOf(all[skipped:]) > 0
	})
	if !arrived {
		return 0
	}
	all = all[skipped:]
	var ns float64
	for _, c := range all {
		ns += c.ToNS - c.FromNS
	}
	return packetsOf(all) / ns * 1e9
}

// generatorRate is rateOf for the receiving generator; 0: the pair has failed.
func (p *place) generatorRate(t *pair) float64 {
	if t.why != "" {
		return 0
	}
	counts := t.receiver
	if counts == nil {
		counts = t.sender
	}
	t.resume()
	rate := p.rateOf(counts)
	t.pause()
	if rate <= 0 {
		return t.fail(noPacket)
	}
	return rate
}

// vnfCounts is how many packets dray-vnf has processed, and the cycles used. It prints
// them on SIGUSR1.
func (p *place) vnfCounts(t *pair) (packets, cycles float64, ok bool) {
	if !t.between.alive() {
		return 0, 0, false
	}
	from := t.between.logged()
	_ = unix.Kill(t.between.innermost(), unix.SIGUSR1) // if it has ended, it does not answer
	ok = t.between.says(p.ctx, from, "}\n", answerWithin)
	log := t.between.logFrom(from)
	field := func(name string) float64 {
		_, after, _ := strings.Cut(log, name)
		return leadingNumber(after)
	}
	packets = field(`"received":`)
	return packets, field(`"cycles_per_packet":`) * packets, ok
}

// forwardRate is generatorRate, and dray-vnf's cycles per packet.
func (p *place) forwardRate(t *pair) (rate, cycles float64) {
	if t.why != "" {
		return 0, 0
	}
	t.resume()
	_ = host.Sleep(p.ctx, settle) // dray-vnf's round with the pause is over then
	packets, before, ok := p.vnfCounts(t)
	if ok {
		rate = p.rateOf(t.sender)
	}
	more, after, ok := p.vnfCounts(t)
	if rate == 0 || !ok || more <= packets {
		return t.fail("no packet came through dray-vnf, or it has ended"), 0
	}
	t.pause()
	return rate, (after - before) / (more - packets)
}
