// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// Output of cyclictest 2.5, cut to three µs, with one sample beyond them.
const cyclictestOutput = `# /dev/cpu_dma_latency set to 0us
# Histogram
000000 000000	000000
000003 000010	000004
000004 000002	000001
# Min Latencies: 00003 00003
# Avg Latencies: 00003 00003
# Max Latencies: 00004 12000
# Histogram Overflows: 00000 00001
`

func TestParseCyclictest(t *testing.T) {
	l, err := parseCyclictest(cyclictestOutput)
	testenv.Must(t, err)
	counts := l.Histogram.Counts
	if most := counts[len(counts)-1].Value; l.Sent != 18 || most < 12_000_000 || most > 12_010_000 {
		t.Errorf("%d samples, at most %d ns", l.Sent, most)
	}
	for _, bad := range []string{"", "# Max Latencies: 00004\n", strings.ReplaceAll(cyclictestOutput, "# Max", "# Mix")} {
		if _, err := parseCyclictest(bad); err == nil {
			t.Errorf("%q is a result", bad)
		}
	}
}

// TestWakeUp: latency under load need not be higher; the test only asserts that it
// ends, and leaves no load.
func TestWakeUp(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, "cyclictest", "stress-ng")
	got, err := WakeUp(context.Background(), Endpoint{}, true, 200*time.Millisecond)
	testenv.Must(t, err)
	if got.Latency == nil || got.Latency.Sent < 200 || got.Instrument.Placement != "on the host" || !strings.Contains(got.Raw, "# Max Latencies") {
		t.Errorf("%+v", got)
	}
}

// An abandoned load ends by itself.
func TestStressEnds(t *testing.T) {
	testenv.Program(t, "stress-ng")
	load, err := startStress(Endpoint{}, 0)
	testenv.Must(t, err)
	defer load.kill()
	if !load.within(30*time.Second) || load.err != nil {
		t.Errorf("%v: %s", load.err, load.words())
	}
}

func TestRealtimeHint(t *testing.T) {
	if hint := realtimeHint("Unable to change scheduling policy!"); !strings.Contains(hint, "cpu.rt_runtime_us") {
		t.Errorf("%q", hint)
	}
	if hint := realtimeHint("Probably missing capabilities, either run as root or increase RLIMIT_RTPRIO limits."); hint == "" {
		t.Error("cyclictest's own message gives no hint")
	}
	if hint := realtimeHint("no such file"); hint != "" {
		t.Errorf("%q", hint)
	}
}
