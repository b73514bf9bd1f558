// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/measure/search"
	"github.com/drayage/dray/internal/spec/matrix"
	"github.com/drayage/dray/test/testenv"
)

// lossy is a link that loses a share of the offered load, and everything above a
// capacity, packets/s. One in spoilt trials loses an extra packet; 0: none does.
// It counts the trials.
func lossy(capacity, share float64, spoilt int) (search.Measurer, *int) {
	trials := 0
	return search.MeasurerFunc(func(_ context.Context, load uint64, d time.Duration) (search.Outcome, error) {
		trials++
		due := math.Floor(float64(load) * d.Seconds())
		lost := math.Max(math.Ceil(share*due), due-capacity*d.Seconds())
		if spoilt > 0 && trials%spoilt == 0 {
			lost = math.Max(lost, 1)
		}
		return search.Outcome{Sent: uint64(due), Received: uint64(due - lost)}, nil
	}), &trials
}

// TestSearchAsTheMatrixSays: every field of a search changes its result.
func TestSearchAsTheMatrixSays(t *testing.T) {
	const most = 10_000_000
	for name, c := range map[string]struct {
		load, search    string
		capacity, share float64
		spoilt          int     // in so many trials one loses a packet
		low, high       float64 // the result; 0: none
	}{
		"no loss":                     {"ndr", "{}", 1e6, 0, 0, 0.97e6, 1e6},
		"narrow":                      {"ndr", "{width: 0.2%}", 1e6, 0, 0, 0.998e6, 1e6},
		"rfc2544":                     {"rfc2544", "{width: 0.2%}", 1e6, 0, 0, 0.998e6, 1e6},
		"no rate without loss":        {"ndr", "{}", 1e6, 0.004, 0, 0, 0},
		"less than half a per cent":   {"pdr", "{}", 1e6, 0.004, 0, 0.97e6, 1.01e6},
		"more than half a per cent":   {"pdr", "{}", 1e6, 0.008, 0, 0, 0},
		"less than one per cent":      {"pdr", "{loss: 1%}", 1e6, 0.008, 0, 0.97e6, 1.02e6},
		"a third of the trials loses": {"ndr", "{sum: 300ms}", 1e6, 0, 3, 0.97e6, 1e6},
		"and none may":                {"ndr", "{sum: 300ms, exceed: 0}", 1e6, 0, 3, 0, 0.5e6},
		"and a second trial is given": {"rfc2544", "{verify: 2}", 1e6, 0, 3, 0.97e6, 1e6},
	} {
		t.Run(name, func(t *testing.T) {
			m := matrixOf(t, "loads: ["+c.load+"]\ntrial: 100ms\nsearch: "+c.search+"\n")
			link, trials := lossy(c.capacity, c.share, c.spoilt)
			found, err := find(context.Background(), link, m, m.Loads[0], most)
			testenv.Must(t, err)
			if got := float64(found.Goals[0].Lower); got < c.low || got > c.high {
				t.Errorf("%.0f packets/s (%+v), want %.0f to %.0f", got, found.Goals[0], c.low, c.high)
			}
			if about := searchTrials(m, m.Loads[0]); c.high > 0.9e6 && c.spoilt == 0 && (*trials > 2*about || *trials < about/3) {
				t.Errorf("%d trials, estimated %d", *trials, about)
			}
		})
	}
}

// TestGoalsNameWhatTheyAsk: no rate is printed without its goal.
func TestGoalsNameWhatTheyAsk(t *testing.T) {
	m := matrixOf(t, "loads: [ndr, pdr, rfc2544]\ntrial: 60s\nsearch: {width: 1%, sum: 120s, exceed: 25%, loss: 0.1%, verify: 3}\n")
	for i, want := range []string{"NDR: loss ≤ 0 %, trials of 1m0s, up to 2m0s of them a load, of which 25 % may lose more, width 1 %",
		"PDR: loss ≤ 0.1 %, trials of 1m0s, up to 2m0s of them a load, of which 25 % may lose more, width 1 %"} {
		if got := goalOf(m, m.Loads[i]).String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	link, _ := lossy(1e6, 0, 0)
	found, err := find(context.Background(), link, m, matrix.Load{Search: matrix.LoadRFC2544}, 2_000_000)
	testenv.Must(t, err)
	for _, want := range []string{"RFC 2544", "loss ≤ 0 %", "1m0s", "up to 3m0s", "width 1 %"} {
		if got := found.Goals[0].Goal.String(); !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
}
