// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
)

// streamed is the ten stream trials of each direction of f1; one trial from the
// function slow had a stall.
func streamed(t *testing.T, slow string) []record.Trial {
	t.Helper()
	var trials []record.Trial
	for _, m := range matrix(f1(), Options{}) {
		if m.quantity != record.QStream {
			continue
		}
		for round := range 10 {
			late := int64(1)
			if round == 3 && m.from.Function == slow {
				late = 1200
			}
			h, err := record.FromLogLinear(6, []int64{86_016, 68_157_440}, []int64{30_000 - late, late})
			if err != nil {
				t.Fatal(err)
			}
			trials = append(trials, record.Trial{
				ID: fmt.Sprintf("%s-r%d", m.id(), round), Link: m.link.Name, From: m.from.String(), To: m.to.String(),
				Quantity: m.quantity, Round: round, Duration: time.Second, Looks: verdict.MaxLooks,
				Delivery: &record.Delivery{OfferedBits: 401_600_000, SentBits: 401_600_000, Sent: 30_000, Received: 30_000},
				OneWay:   &record.OneWay{Latency: h, Intended: h, Min: 86 * time.Microsecond, Max: 68 * time.Millisecond},
			})
		}
	}
	return trials
}

// Only open requirements are measured again, long enough to make the trials
// verdict.Prolonged times as many.
func TestUndecidedIsMeasuredAgain(t *testing.T) {
	in := Input{Plan: f1()}
	ms := matrix(in.Plan, in.Options)
	if again := in.undecided(ms, streamed(t, "nobody")); len(again) != 0 {
		t.Errorf("everything is decided, but %s is measured again", names(again, observation{}))
	}
	again := in.undecided(ms, streamed(t, "cu-up"))
	if len(again) != 1 {
		t.Fatalf("%d measurements again (%s), want the stream from cu-up", len(again), names(again, observation{}))
	}
	m := again[0]
	if m.quantity != record.QStream || m.from.Function != "cu-up" || m.look != 1 || m.rounds != 30 || m.before != 10 {
		t.Errorf("%s of look %d: %d rounds after %d", m.id(), m.look, m.rounds, m.before)
	}
}

func TestOnlyTheProfilesRoundsAreProlonged(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		want int
	}{
		"standard": {Options{}, 2}, "thorough": {Options{Profile: Thorough}, 2},
		"quick": {Options{Profile: Quick}, 1}, "rounds of the user's": {Options{Rounds: 5}, 1},
	} {
		if got := c.o.pace().looks; got != c.want {
			t.Errorf("%s: %d looks, want %d", name, got, c.want)
		}
	}
}
