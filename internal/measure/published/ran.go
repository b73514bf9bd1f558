// SPDX-License-Identifier: Apache-2.0

package published

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/experiment"
)

const (
	// ranAttached is what the mobile writes once it has an address.
	ranAttached = "Network attach successful"
	// ranAttachPatience bounds the attach: with srsRAN's own pacing it takes half a minute on two CPUs.
	ranAttachPatience = 100 * time.Second
	// ranTimes is how many trials long each stream through the RAN is, and the time without one.
	ranTimes = 5
	ranPings = 40
	// ranVerify is roughly how long the judgement of S1 takes.
	ranVerify = 20 * time.Second
)

// The addresses of the core network and the mobile on the packet data network.
var ranGateway, ranAddress = netip.MustParseAddr("172.16.0.1"), netip.MustParseAddr("172.16.0.2")

// ranTime is roughly how long a RAN takes to come up and be measured.
func ranTime(_ experiment.Cell, trial time.Duration) time.Duration {
	return ranAttachPatience/3 + 3*ranTimes*trial + ranPings*ranInterval + ranVerify
}

// ran attaches the mobile, and measures what it gets: idle, with pings, with TCP in each direction, and S1's
// requirements while it pings.
func ran(ctx context.Context, r *Runner, live *node.Live, c experiment.Cell) (record.Trial, error) {
	t := record.Trial{Quantity: record.QRAN, Start: time.Now(), Marks: []string{}, Runtimes: map[string]string{ranBase: string(c.Runtime)}}
	stop, err := supervise(ctx, live)
	if err != nil {
		return t, err
	}
	defer stop()
	if err := ranAttach(ctx, live); err != nil {
		return t, err
	}
	v := map[string]float64{"attach_time": time.Since(t.Start).Seconds()}
	t.Experiment = &record.Experiment{Values: v, Why: map[string]string{}}
	steps := []func(context.Context, *Runner, *node.Live, experiment.Cell, *record.Trial) error{ranIdle, ranPinged, ranStreams, ranJudged}
	for _, step := range steps {
		if err := step(ctx, r, live, c, &t); err != nil {
			return t, fmt.Errorf("%w; the last output of the mobile: %s; of the base station: %s", err, live.LogTail(ranMobile, 2), live.LogTail(ranBase, 2))
		}
	}
	t.Duration = time.Since(t.Start)
	if err := ranElsewhere(ctx, live, c, t.Experiment); err != nil {
		return t, err
	}
	if c.Hosts > 0 {
		t.Mark(record.MarkSimulatedHosts)
	}
	return t, nil
}

// ranElsewhere removes the base station's figures if its CPU time is counted elsewhere.
func ranElsewhere(ctx context.Context, live *node.Live, c experiment.Cell, e *record.Experiment) error {
	why, err := memoryElsewhere(ctx, live, ranBase, c)
	if why != "" {
		for _, figure := range []string{"cpu_enb", "subframe_enb"} {
			delete(e.Values, figure)
			e.Why[figure] = why
		}
	}
	return err
}

// ranAttach waits until the mobile has an address.
func ranAttach(ctx context.Context, live *node.Live) error {
	for began := time.Now(); !strings.Contains(live.LogTail(ranMobile, 1<<10), ranAttached); {
		if time.Since(began) > ranAttachPatience {
			return fmt.Errorf("the mobile was not attached within %v; its last output: %s; the base station's: %s; the core network's: %s",
				ranAttachPatience, live.LogTail(ranMobile, 3), live.LogTail(ranBase, 3), live.LogTail(ranCore, 3))
		}
		if err := host.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// ranIdle measures the RAN without traffic.
func ranIdle(ctx context.Context, r *Runner, live *node.Live, c experiment.Cell, t *record.Trial) error {
	before, err := ranRead(ctx, live, c)
	if err != nil {
		return err
	}
	if err := host.Sleep(ctx, ranTimes*r.Run.Trial); err != nil {
		return err
	}
	after, err := ranRead(ctx, live, c)
	if err != nil {
		return err
	}
	cost, err := after.since(before)
	v := t.Experiment.Values
	v["real_time"], v["subframe_enb"], v["subframe_ue"] = cost.realTime, cost.perSubframe[ranBase], cost.perSubframe[ranMobile]
	return err
}

// ranInterval is the time between two pings.
const ranInterval = 100 * time.Millisecond

// ranPinged measures round trips from the mobile to the gateway, after a few that wake the bearer.
func ranPinged(ctx context.Context, _ *Runner, live *node.Live, _ experiment.Cell, t *record.Trial) error {
	if _, err := ranPing(ctx, live, 3); err != nil {
		return err
	}
	out, err := ranPing(ctx, live, ranPings)
	t.Raw += out
	if err != nil {
		return err
	}
	t.Experiment.Values["round_trip"], err = pingMean(out)
	return err
}

func ranPing(ctx context.Context, live *node.Live, count int) (string, error) {
	var out bytes.Buffer
	argv := []string{"ping", "-n", "-c", strconv.Itoa(count), "-i", fmt.Sprint(ranInterval.Seconds()), "-W", "3", ranGateway.String()}
	_, err := live.Exec(ctx, ranMobile, argv, runtime.Stdio{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
	return out.String(), err
}

var pingTimes = regexp.MustCompile(`(?m)^rtt min/avg/max/mdev = [0-9.]+/([0-9.]+)/`)

// pingMean is the mean round trip in ms that ping prints.
func pingMean(out string) (float64, error) {
	m := pingTimes.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("no ping of the mobile was answered: %s", strings.TrimSpace(out))
	}
	return strconv.ParseFloat(m[1], 64)
}

// ranStreams measures TCP through the RAN: down, with the CPU time that it takes, then up.
func ranStreams(ctx context.Context, r *Runner, live *node.Live, c experiment.Cell, t *record.Trial) error {
	end := func(function string, ip netip.Addr) instrument.Endpoint {
		return instrument.Endpoint{Name: function, Place: live.State.Sandboxes[function].Place(), IP: ip, MTU: 1500}
	}
	core, mobile := end(ranCore, ranGateway), end(ranMobile, ranAddress)
	p := instrument.Params{Duration: ranTimes * r.Run.Trial}
	before, err := ranRead(ctx, live, c)
	if err != nil {
		return err
	}
	down, err := instrument.Iperf3{}.Run(ctx, core, mobile, p)
	t.Raw += down.Raw
	if err != nil {
		return fmt.Errorf("to the mobile: %w", err)
	}
	after, err := ranRead(ctx, live, c)
	if err != nil {
		return err
	}
	cost, err := after.since(before)
	if err != nil {
		return err
	}
	up, err := instrument.Iperf3{}.Run(ctx, mobile, core, p)
	t.Raw += up.Raw
	if err != nil {
		return fmt.Errorf("from the mobile: %w", err)
	}
	v := t.Experiment.Values
	v["throughput"], v["uplink"] = float64(down.Throughput.BitsPerSecond)/mega, float64(up.Throughput.BitsPerSecond)/mega
	v["cpu_epc"], v["cpu_enb"], v["cpu_ue"] = cost.share[ranCore], cost.share[ranBase], cost.share[ranMobile]
	return nil
}

// ranJudged judges the requirements of S1 while the mobile pings.
func ranJudged(ctx context.Context, r *Runner, live *node.Live, _ experiment.Cell, t *record.Trial) error {
	pinging, stop := context.WithCancel(ctx)
	answers := make(chan string, 1)
	go func() {
		out, _ := ranPing(pinging, live, 1<<20) // it is stopped
		answers <- out
	}()
	err := judgeLink(ctx, r, live, *live.State.Plan.Link(ranBackhaul), nil, t, "s1_met")
	stop()
	answered := strings.Count(<-answers, " bytes from ")
	if err != nil {
		return err
	}
	if answered == 0 {
		return errors.New("while S1 was measured, no ping of the mobile was answered")
	}
	t.Raw += fmt.Sprintf("%d pings of the mobile were answered while S1 was measured\n", answered)
	return nil
}
