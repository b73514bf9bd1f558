// SPDX-License-Identifier: Apache-2.0

package published

import (
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/test/testenv"
)

func TestChainsOfPools(t *testing.T) {
	for _, state := range []experiment.State{"", experiment.StateWorker} {
		for event, workers := range map[experiment.Event]int{"": 2, experiment.EventKill: 2, experiment.EventLeave: 2, experiment.EventAdd: 3} {
			c := experiment.Cell{Tool: experiment.ToolPool, Runtime: chain.RuntimeRunc, Workers: 2, Event: event, State: state}
			parsed, err := chain.Parse(c.String(), chainText(host2(), c))
			if err != nil {
				t.Errorf("%v:\n%s", err, chainText(host2(), c))
				continue
			}
			if got := poolWorkers(c); len(got) != workers {
				t.Errorf("%s has the workers %v", c, got)
			}
			if lb := parsed.Function(balancer); len(lb.Ports) != 1+workers {
				t.Errorf("%s: the balancer has the ports %+v", c, lb.Ports)
			}
			// Without a store a worker has one port, and no address to reach another.
			stores := parsed.Function(store) != nil
			if last := parsed.Function(poolWorkers(c)[workers-1]); stores != (state == "") || stores != (len(last.Ports) == 2) || stores != slices.Contains(last.Command, "--redis") {
				t.Errorf("%s: a store %v, and %+v", c, stores, last)
			} else if waits := last.Command[0] == "sh"; waits != (event == experiment.EventAdd) {
				t.Errorf("%s: the last worker waits: %v", c, waits)
			}
		}
	}
}

// A worker that was restarted counts twice. A process that was killed before it reported had nothing.
func TestSessionsOfAWorker(t *testing.T) {
	const first = `EAL: Detected CPU lcores: 2
{"event":"ready","mode":"session"}
{"event":"interval","sessions":{"live":0,"resumed":0}}
{"event":"interval","sessions":{"live":140,"resumed":20}}
`
	for log, want := range map[string]sessions{
		"":                               {},
		first:                            {140, 120},
		first + `{"event":"interval","s`: {140, 120},
		first + `{"event":"ready"}`:      {140, 120},
		first + `{"event":"ready"}` + "\n" + `{"event":"interval","sessions":{"live":116,"resumed":116}}`: {256, 120},
	} {
		if got := reported(log); got != want {
			t.Errorf("%+v, want %+v, of:\n%s", got, want, log)
		}
	}
}

func TestWorkersUp(t *testing.T) {
	for report, want := range map[string]int{
		`{"event":"ready"}`: 0, `{"workers":[{"port":1,"up":true},{"port":2,"up":false},{"port":3,"up":true}]}`: 2, `{"workers":[{"port":1,"up":true`: 0,
	} {
		if got := workersUp(report); got != want {
			t.Errorf("%d up, want %d: %s", got, want, report)
		}
	}
}

func TestAnswers(t *testing.T) {
	const log = "dray-ready\n" + `{"event":"interval","sent":10,"lost":3}` + "\n"
	if got, ended := answers(log + `{"event":"result","lost":7,"se`); ended {
		t.Errorf("half a result is %+v", got)
	}
	if got, ended := answers(log + `{"event":"result","lost":7,"send_pps":9990.5}`); !ended || got != (answered{7, 9990.5}) {
		t.Errorf("%+v, %v", got, ended)
	}
}

func TestWhatAnEventCosts(t *testing.T) {
	figures := func(before, after sessions, packets uint64) map[string]float64 {
		t.Helper()
		e, err := (&poolTrial{before: before, after: after}).figures(answered{packets, 10_000})
		testenv.Must(t, err)
		return e.Values
	}
	// 128 of 256 sessions have half of the 10,000 packets/s: 50 packets in 10 ms.
	if v := figures(sessions{256, 256}, sessions{384, 256}, 50); v["sessions_lost"] != 0 || v["sessions_kept"] != 256 || v["sessions_moved"] != 128 || v["packets_lost"] != 50 || v["outage"] != 10 {
		t.Errorf("with a store: %v", v)
	}
	if v := figures(sessions{256, 256}, sessions{384, 384}, 50); v["sessions_lost"] != 128 || v["sessions_kept"] != 128 || v["sessions_moved"] != 128 {
		t.Errorf("without a store: %v", v)
	}
	for _, after := range []sessions{{384, 200}, {256, 300}, {600, 256}, {256, 256}} {
		if e, err := (&poolTrial{before: sessions{256, 256}, after: after}).figures(answered{0, 10_000}); err == nil || !strings.Contains(err.Error(), "contradict") {
			t.Errorf("%+v gives %+v, %v", after, e, err)
		}
	}
}
