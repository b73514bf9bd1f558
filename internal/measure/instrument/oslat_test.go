// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// Output of spinScript with oslat 2.40, cut.
const spinOutput = `dray: before
19.50 30.12
           CPU0       CPU1
  0:         30          0   IO-APIC   2-edge      timer
LOC:       4182       3001   Local timer interrupts
Preheat cores: 		1

Pre-heat for 1 seconds...
        Core:	 1
    001 (us):	 38966158
    016 (us):	 3608 (including overflows)
     Minimum:	 1 (us)
     Average:	 1.021 (us)
     Maximum:	 4154 (us)
     Max-Min:	 4153 (us)
dray: after
21.75 32.10
           CPU0       CPU1
LOC:       5182       3010   Local timer interrupts
`

func TestParseSpin(t *testing.T) {
	s, err := parseSpin([]byte(spinOutput), 1)
	if err != nil || s.Longest != 4154*time.Microsecond || s.Ticks != 4 {
		t.Errorf("%+v, %v", s, err)
	}
	for bad, want := range map[string]string{
		strings.ReplaceAll(spinOutput, "Maximum", "Mean"): "no maximum",
		strings.ReplaceAll(spinOutput, "after", "later"):  "before and after",
		strings.ReplaceAll(spinOutput, "21.75", "19.50"):  "timer interrupts after",
		strings.ReplaceAll(spinOutput, "3010", "2010"):    "timer interrupts after",
		strings.ReplaceAll(spinOutput, "3010", "-1"):      "invalid syntax",
		strings.ReplaceAll(spinOutput, "CPU1", "CPU2"):    "no CPU 1",
		strings.ReplaceAll(spinOutput, "LOC", "LOX"):      "no line",
		strings.ReplaceAll(spinOutput, "19.50 30.12", ""): "uptime",
	} {
		if _, err := parseSpin([]byte(bad), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestSpin spins on this machine. It asserts no duration, only that the test runs,
// is read and is placed.
func TestSpin(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, "oslat")
	if runtime.GOARCH != "amd64" {
		t.Skip("the timers of this architecture have another name")
	}
	got, s, err := Spin(context.Background(), Endpoint{}, 0, 100*time.Millisecond)
	testenv.Must(t, err)
	if s.Longest <= 0 || got.Duration != time.Second || got.Instrument.Placement != "on the host" || !strings.Contains(got.Raw, "Maximum") {
		t.Errorf("%+v of %+v", s, got)
	}
	if _, _, err := Spin(context.Background(), Endpoint{}, 100_000, time.Second); err == nil {
		t.Error("a thread spins on a CPU that does not exist")
	}
}
