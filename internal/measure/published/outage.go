// SPDX-License-Identifier: Apache-2.0

package published

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
)

const (
	outageRate = 10_000               // packets/s
	outageTick = 5 * time.Millisecond // the receiver's report interval; shorter outages are not seen
	// outageSettled is how long packets must flow before the kill, and after it.
	outageSettled = 200 * time.Millisecond
	// outagePatience is how long packets may fail to arrive.
	outagePatience = 20 * time.Second
	// outageTime is roughly how long all of that takes.
	outageTime = 1500 * time.Millisecond
	generator  = "draygen"
)

// outageText is a sender that is restarted, and a receiver that is not.
func outageText(c experiment.Cell) string {
	path, err := instrument.FindOwn(generator)
	if err != nil || c.Runtime == chain.RuntimeDocker { // the image has its own
		path = generator // without one the function does not find it either, and says so
	}
	function := func(name, role, port, more string) string {
		return fmt.Sprintf("  - {name: %s, runtime: %s%s%s, command: [%q, %s, --port, \"dray:%s\", --interval, %v, --peer-timeout, %ds], ports: [{name: %s, face: native}]}\n",
			name, c.Runtime, imageField(c), more, path, role, port, outageTick, int(outagePatience.Seconds()), port)
	}
	send := fmt.Sprintf("send, --rate, %dpps, --catch-up, 100ms", outageRate)
	return "functions:\n" + function(client, send, clientPort, ", restart: always") + function(server, "sink", sink, "") +
		fmt.Sprintf("links:\n  - {name: link, ends: [%s.%s, %s.%s], transport: %s}\n", client, clientPort, server, sink, c.Transport)
}

// outage kills the sender, and reads from the receiver's reports how long nothing
// arrived. The receiver must keep running.
func outage(ctx context.Context, live *node.Live) (record.Trial, error) {
	t := record.Trial{Quantity: record.QRecovery, Start: time.Now(), Marks: []string{}}
	stop, err := supervise(ctx, live)
	if err != nil {
		return t, err
	}
	defer stop()
	if err := awaitArrivals(ctx, live, 0); err != nil {
		return t, err
	}
	receiver, err := processOf(ctx, live, server)
	if err != nil {
		return t, err
	}
	if err := killSender(ctx, live); err != nil {
		return t, err
	}
	seen, err := ticks(live)
	if err != nil {
		return t, err
	}
	if err := awaitArrivals(ctx, live, len(seen)); err != nil {
		return t, err
	}
	after, err := processOf(ctx, live, server)
	if err != nil {
		return t, err
	}
	if after != receiver {
		return t, errors.New("the receiver ended with its peer, and was restarted")
	}
	seen, err = ticks(live)
	if err != nil {
		return t, err
	}
	t.Duration = time.Since(t.Start)
	t.Raw = fmt.Sprintf("%d reports, one each %v; the longest time from one with arrivals to the next %v\n", len(seen), outageTick, longestPause(seen))
	t.Experiment = &record.Experiment{Values: map[string]float64{"outage": float64(longestPause(seen)) / perMilli}}
	return t, nil
}

func killSender(ctx context.Context, live *node.Live) error {
	sender, err := processOf(ctx, live, client)
	if err != nil {
		return err
	}
	if err := kill(sender); err != nil {
		return err
	}
	for began := time.Now(); strings.Count(live.LogTail(client, 1<<20), `"event":"ready"`) < 2; {
		if time.Since(began) > outagePatience {
			return fmt.Errorf("the sender did not restart; its last output: %s", live.LogTail(client, 2))
		}
		if err := host.Sleep(ctx, outageTick); err != nil {
			return err
		}
	}
	return nil
}

// awaitArrivals waits until packets have arrived for a while, in the reports
// starting at from.
func awaitArrivals(ctx context.Context, live *node.Live, from int) error {
	for began := time.Now(); time.Since(began) < outagePatience; {
		seen, err := ticks(live)
		if err != nil {
			return err
		}
		passing := 0
		for _, t := range seen[min(from, len(seen)):] {
			if t.arrived > 0 {
				passing++
			}
		}
		if passing >= int(outageSettled/outageTick) {
			return nil
		}
		if err := host.Sleep(ctx, 10*outageTick); err != nil {
			return err
		}
	}
	return fmt.Errorf("no packets pass; the last output of the receiver: %s", live.LogTail(server, 1))
}

// tick is one of the receiver's reports.
type tick struct {
	to      time.Duration // its end, by the receiver's clock
	arrived uint64        // packets since the previous report
}

// ticks are the receiver's reports. A restarted sender counts from the beginning,
// so its packets may look like duplicates.
func ticks(live *node.Live) ([]tick, error) {
	log, err := os.ReadFile(live.LogFile(server))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseTicks(log), nil
}

func parseTicks(log []byte) []tick {
	var list []tick
	lines := bufio.NewScanner(bytes.NewReader(log))
	for lines.Scan() {
		var report struct {
			Event                string
			To                   time.Duration `json:"to_ns"`
			Received, Duplicates uint64
		}
		// The last line may be incomplete.
		if json.Unmarshal(lines.Bytes(), &report) == nil && report.Event == "interval" {
			list = append(list, tick{report.To, report.Received + report.Duplicates})
		}
	}
	return list
}

// longestPause is the longest time from one report with arrivals to the next: the
// pause, and up to one report more. A stalled receiver omits reports, so counting
// them proves nothing.
func longestPause(seen []tick) (longest time.Duration) {
	last, begun := time.Duration(0), false
	for _, t := range seen {
		if begun {
			longest = max(longest, t.to-last)
		}
		if t.arrived > 0 {
			last, begun = t.to, true
		}
	}
	return longest
}
