// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"math"
	"strconv"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/units"
)

// FormatDuration prints nanoseconds with three significant digits, in the chain file's
// units; an infinite delay is "∞".
func FormatDuration(ns float64) string {
	if math.IsInf(ns, 1) || ns > math.MaxInt64 {
		return "∞"
	}
	return units.Duration(round3(ns)).String()
}

// FormatBitrate prints bits per second with three significant digits.
func FormatBitrate(bps float64) string { return units.Bitrate(round3(bps)).String() }

// FormatPacketRate prints packets per second with three significant digits.
func FormatPacketRate(pps float64) string { return units.PacketRate(round3(pps)).String() }

// share prints a proportion with three significant digits, in chain file syntax.
func share(p float64) string {
	v, err := strconv.ParseFloat(strconv.FormatFloat(p, 'g', 3, 64), 64)
	if err != nil {
		return "–"
	}
	return units.Ratio(v).String()
}

// round3 rounds to a whole number of at most three significant digits. Negative values,
// possible for the bound of a rate, count as 0.
func round3(v float64) float64 {
	if !(v > 0) {
		return 0
	}
	step := math.Max(1, math.Pow(10, math.Floor(math.Log10(v))-2))
	return math.Round(v/step) * step
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// amount states how many samples are needed, and how long that takes at the trials'
// sampling rate.
func amount(need, have float64, trials []record.Trial, what string) string {
	s := "about " + plural(int(round3(need)), what)
	if t := span(trials).Seconds(); t > 0 && have > 0 {
		s += fmt.Sprintf(" (%s at %.3g/s)", seconds(need/have*t), have/t)
	}
	return s
}

func seconds(s float64) string {
	switch {
	case s < 120:
		return fmt.Sprintf("%.3g s", s)
	case s < 7200:
		return fmt.Sprintf("%.3g min", s/60)
	}
	return fmt.Sprintf("%.3g h", s/3600)
}

// within5 reports whether a rate is within 5 % of the wanted one; only 0 is within 5 %
// of 0.
func within5(rate, wanted uint64) bool {
	return math.Abs(float64(rate)-float64(wanted)) <= 0.05*float64(wanted)
}

// reached reports whether the sender sent what it had to: within 5 %, or one packet more or less, which
// is much of a short trial with a small load.
func reached(d *record.Delivery) bool {
	if within5(d.SentBits, d.OfferedBits) {
		return true
	}
	wanted := float64(d.Sent) * float64(d.OfferedBits) / math.Max(1, float64(d.SentBits))
	return d.Sent > 1 && math.Abs(wanted-float64(d.Sent)) <= 1
}

// missedRate says how far from its rate a sender was.
func missedRate(d *record.Delivery) string {
	only := ""
	if d.SentBits < d.OfferedBits {
		only = "only "
	}
	return fmt.Sprintf("the sender reached %s%s of %s", only, FormatBitrate(float64(d.SentBits)), FormatBitrate(float64(d.OfferedBits)))
}

func noResult(t record.Trial) string {
	if t.Error != "" {
		return t.Error
	}
	if t.Passive && t.Delivery == nil {
		return nothingSentText
	}
	return "it has no result"
}
