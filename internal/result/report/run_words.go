// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/verdict"
)

func quantityText(q record.Quantity) string { return strings.ReplaceAll(string(q), "_", " ") }

// quantityName names a row's quantity, and the instrument of a cross-check.
func quantityName(m Measurement) string {
	if m.Passive {
		return ownTraffic
	}
	return quantityText(m.Quantity) + by(m)
}

// ownTraffic is the application's, when nothing else was sent.
const ownTraffic = "own traffic"

// delayText says how a delay was measured, and names a cross-check's instrument.
func delayText(m Measurement) string {
	if m.Passive {
		return m.Delay.Way + ", " + ownTraffic
	}
	return m.Delay.Way + by(m)
}

func by(m Measurement) string {
	if !m.CrossCheck {
		return ""
	}
	return " by " + m.Instrument
}

// crossCheckNote explains rows that name an instrument.
const crossCheckNote = "Rows that name an instrument are cross-checks and do not affect verdicts."

func crossChecked(ms []Measurement) bool {
	return slices.ContainsFunc(ms, func(m Measurement) bool { return m.CrossCheck })
}

func loadText(m Measurement) string {
	if m.Load == 0 {
		return "none"
	}
	return verdict.FormatBitrate(float64(m.Load))
}

func longest(d *Delay) string {
	if d.Samples == d.Lost {
		return document.None
	}
	return verdict.FormatDuration(float64(d.Max))
}

func quantileText(q Quantile) string {
	if q.Refused != "" {
		return document.None
	}
	return verdict.FormatDuration(float64(q.Value))
}

// rateText prints a rate with its unit.
func rateText(unit string, v float64) string {
	switch unit {
	case "bit/s":
		return verdict.FormatBitrate(v)
	case "packets/s":
		return verdict.FormatPacketRate(v)
	}
	return fmt.Sprintf("%.0f/s", v)
}

func valueText(m Measurement) string {
	switch {
	case m.MTU != nil:
		return fmt.Sprintf("%d B passed in %d of %s", m.MTU.Bytes, m.MTU.Passed, countOf(m.MTU.Rounds, "round"))
	case m.Rate == nil:
		return document.None
	case m.Rate.Low == nil:
		return rateText(m.Rate.Unit, m.Rate.Mean) + ", one trial"
	}
	u := m.Rate.Unit
	return fmt.Sprintf("%s (%s … %s)", rateText(u, m.Rate.Mean), rateText(u, *m.Rate.Low), rateText(u, *m.Rate.High))
}

func lossText(m Measurement) string {
	if m.Loss == nil || m.Loss.Sent == 0 {
		return document.None
	}
	text := fmt.Sprintf("%d of %d", m.Loss.Lost-min(m.Loss.Lost, m.Loss.ReceiverDrops), m.Loss.Sent)
	if m.Loss.ReceiverDrops > 0 {
		text += fmt.Sprintf(" (and %d dropped by a slow receiver)", m.Loss.ReceiverDrops)
	}
	return text
}

func trialsText(m Measurement) string {
	s := fmt.Sprint(len(m.Trials))
	if n := len(m.Failed); n > 0 {
		s += fmt.Sprintf(", %d failed", n)
	}
	if n := len(m.Outliers); n > 0 {
		s += fmt.Sprintf(", %s", countOf(n, "outlier"))
	}
	return s
}

// elapsed prints a span of wall-clock time.
func elapsed(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}
