// SPDX-License-Identifier: Apache-2.0

package published

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/telemetry"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
)

// ranBlocks is the bandwidth of the cell in resource blocks, as the source's.
const ranBlocks = 25

// ranSubframe is the length of a subframe of 1 ms in bytes: 5.76 million samples per second, each two
// 32-bit numbers.
const ranSubframe = 5760 * 8

// ranMoment is what the RAN has used until a moment.
type ranMoment struct {
	at        time.Time
	cpu       map[string]time.Duration // of each function
	subframes float64                  // that the mobile has received
}

// ranCost is what it used between two moments.
type ranCost struct {
	share       map[string]float64 // of each function, % of a CPU
	perSubframe map[string]float64 // µs
	// realTime is how many subframes came in a millisecond.
	realTime float64
}

// ranRead is the present moment.
func ranRead(ctx context.Context, live *node.Live, c experiment.Cell) (ranMoment, error) {
	m := ranMoment{cpu: map[string]time.Duration{}}
	for _, f := range []string{ranCore, ranBase, ranMobile} {
		all, err := cpuTime(live.FunctionCgroup(f))
		if err != nil {
			return m, err
		}
		instruments, err := cpuTime(live.State.Sandboxes[f].Tools)
		if err != nil {
			return m, err
		}
		m.cpu[f] = all - instruments
	}
	received, err := ranReceived(ctx, live, c)
	m.at, m.subframes = time.Now(), float64(received)/ranSubframe
	return m, err
}

// cpuTime is the CPU time that a control group has used.
func cpuTime(c host.Cgroup) (time.Duration, error) {
	meter, err := host.NewMeter(c)
	if err != nil {
		return 0, err
	}
	usage, err := meter.Read()
	return usage.CPU, err
}

// since is the cost between two moments.
func (m ranMoment) since(before ranMoment) (ranCost, error) {
	cost := ranCost{share: map[string]float64{}, perSubframe: map[string]float64{}}
	took, subframes := m.at.Sub(before.at), m.subframes-before.subframes
	if took <= 0 || subframes <= 0 {
		return cost, errors.New("the mobile received no samples")
	}
	cost.realTime = subframes / (float64(took) / perMilli)
	for f, cpu := range m.cpu {
		used := float64(cpu - before.cpu[f])
		cost.share[f] = used / float64(took) * 100
		cost.perSubframe[f] = used / perMicro / subframes
	}
	return cost, nil
}

// ranReceived is how many bytes of samples the mobile has received, from the counters of its port. Those of an
// interface count headers as well, under one per cent of a subframe.
func ranReceived(ctx context.Context, live *node.Live, c experiment.Cell) (uint64, error) {
	if c.Face == chain.FaceNative {
		return ranMessages(ctx, live)
	}
	var out bytes.Buffer
	code, err := live.Exec(ctx, ranMobile, []string{"cat", "/proc/net/dev"}, runtime.Stdio{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
	if err != nil || code != 0 {
		return 0, errors.Join(err, fmt.Errorf("counters of the mobile's interface: exit status %d: %s", code, out.String()))
	}
	return receivedBy(out.String(), ranRadio)
}

// receivedBy reads the bytes that an interface has received from the table of proc_pid_net(5).
func receivedBy(table, name string) (uint64, error) {
	for _, line := range strings.Split(table, "\n") {
		at, counters, found := strings.Cut(line, ":")
		if fields := strings.Fields(counters); found && strings.TrimSpace(at) == name && len(fields) > 0 {
			return strconv.ParseUint(fields[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("no interface %s", name)
}

// ranMessages are the bytes of messages that the mobile has received.
func ranMessages(ctx context.Context, live *node.Live) (uint64, error) {
	flow, err := flowTo(ctx, live, ranMobile+"."+ranDown)
	return flow.Bytes, err
}

// flowTo is what a port of libdray has received since it was opened.
func flowTo(ctx context.Context, live *node.Live, port string) (telemetry.Flow, error) {
	client, err := broker.Dial(live.BrokerDir())
	if err != nil {
		return telemetry.Flow{}, err
	}
	links, err := client.Status(ctx)
	if err != nil {
		return telemetry.Flow{}, err
	}
	for _, f := range telemetry.Total(telemetry.Snapshot{Links: links}) {
		if f.To == port {
			return f, nil
		}
	}
	return telemetry.Flow{}, fmt.Errorf("the broker reports no port %s", port)
}
