// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
)

// Percentiles are the percentiles of tables.
var Percentiles = []float64{50, 90, 99, 99.9, 99.99}

// Measurement is one cell of the experiment: a quantity over one direction of a link
// under one load by one instrument, over all its trials except the warm-up.
type Measurement struct {
	Link       string          `json:"link"`
	Transport  string          `json:"transport"`
	From       string          `json:"from"`
	To         string          `json:"to"`
	Quantity   record.Quantity `json:"quantity"`
	Instrument string          `json:"instrument"`
	CrossCheck bool            `json:"cross_check"`       // shown, but never judged
	Passive    bool            `json:"passive,omitempty"` // see record.Trial
	Load       uint64          `json:"load"`              // bit/s on the link meanwhile, or offered
	Rate       *Rate           `json:"rate,omitempty"`    // throughput, stream, delivery, packet_rate, requests
	Delay      *Delay          `json:"delay,omitempty"`
	Loss       *Loss           `json:"loss,omitempty"`
	MTU        *MTU            `json:"mtu,omitempty"`
	Windows    []Window        `json:"windows,omitempty"` // of messages in slots
	Trials     []string        `json:"trials"`
	Failed     []string        `json:"failed"`   // trials without a result
	Outliers   []string        `json:"outliers"` // flagged, not removed
	Marks      []string        `json:"marks"`

	dist *stats.Dist // of Delay
}

// Rate is a mean over trials with its two-sided 95 % interval; see meanOf.
type Rate struct {
	Unit   string    `json:"unit"` // "bit/s", "packets/s", "requests/s"
	Mean   float64   `json:"mean"`
	Low    *float64  `json:"low,omitempty"`
	High   *float64  `json:"high,omitempty"`
	Values []float64 `json:"values"` // of each trial, in the order of Trials
}

// Delay is a distribution of one-way times or of full round trips.
type Delay struct {
	Way       string     `json:"way"`     // OneWay or RoundTrip
	Samples   int64      `json:"samples"` // including lost ones
	Lost      int64      `json:"lost"`
	Max       int64      `json:"max"` // ns
	Quantiles []Quantile `json:"quantiles"`
	// For one-way times only: the variation D(i)−Dmin of each trial (RFC 5481) and the
	// generator's lateness, both at p99, and the packets never sent.
	PDV      *Quantile `json:"pdv,omitempty"`
	Lateness *Quantile `json:"lateness,omitempty"`
	Unsent   uint64    `json:"unsent"`
}

// How a delay was measured.
const (
	OneWay    = "one way"
	RoundTrip = "round trip"
)

// Quantile is a value, or the reason for none.
type Quantile struct {
	Percentile float64 `json:"percentile"`
	Value      int64   `json:"value,omitempty"` // ns
	Refused    string  `json:"refused,omitempty"`
}

// Loss is the fate of datagrams.
type Loss struct {
	Sent uint64 `json:"sent"`
	Lost uint64 `json:"lost"`
	// ReceiverDrops is the part of Lost that the link delivered, but that the receiving
	// program was too slow to read.
	ReceiverDrops uint64 `json:"receiver_drops"`
	Reordered     uint64 `json:"reordered"`
	Duplicated    uint64 `json:"duplicated"`
	// Jitter is RFC 3550 jitter, a mean over the trials that have it, ns; nil: none
	// has.
	Jitter *time.Duration `json:"jitter,omitempty"`
}

// MTU counts the rounds in which packets of a size passed.
type MTU struct {
	Bytes  int `json:"bytes"`
	Passed int `json:"passed"`
	Rounds int `json:"rounds"`
}

// Measurements summarises the trials, in the order of the plan's links, then by
// quantity, direction and load.
func (d *Data) Measurements() []Measurement {
	type cell struct {
		link, from, to, tool string
		quantity             record.Quantity
		load                 uint64
		crossCheck, passive  bool
	}
	var order []cell
	trials := map[cell][]record.Trial{}
	for _, t := range d.Trials {
		if t.Warmup || t.Function != "" {
			continue
		}
		c := cell{t.Link, t.From, t.To, t.Instrument.Name, t.Quantity, loadOf(t), t.CrossCheck, t.Passive}
		if trials[c] == nil {
			order = append(order, c)
		}
		trials[c] = append(trials[c], t)
	}
	var out []Measurement
	for _, c := range order {
		out = append(out, sumUp(trials[c]))
	}
	rank := d.linkOrder()
	slices.SortStableFunc(out, func(a, b Measurement) int {
		return cmp.Or(cmp.Compare(rank(a.Link), rank(b.Link)), cmp.Compare(a.Link, b.Link),
			cmp.Compare(quantityOrder(a.Quantity), quantityOrder(b.Quantity)),
			cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Load, b.Load))
	})
	return out
}

func (d *Data) linkOrder() func(string) int {
	pos := map[string]int{}
	for i, l := range d.judged() {
		pos[l.Name] = i
	}
	return func(name string) int {
		if i, ok := pos[name]; ok {
			return i
		}
		return len(pos)
	}
}

func quantityOrder(q record.Quantity) int {
	return slices.Index([]record.Quantity{
		record.QThroughput, record.QStream, record.QProbe, record.QLatency, record.QDelivery, record.QPacketRate, record.QRequests, record.QPathMTU,
	}, q)
}

func loadOf(t record.Trial) uint64 {
	switch {
	case t.Load != nil:
		return t.Load.Offered
	case t.Quantity == record.QProbe || t.Passive:
		return 0 // too few packets for a load, or an application's own
	case t.Delivery != nil:
		return t.Delivery.OfferedBits
	}
	return 0
}

func sumUp(trials []record.Trial) Measurement {
	t := trials[0]
	m := Measurement{
		Link: t.Link, Transport: t.Transport, From: t.From, To: t.To, Quantity: t.Quantity, Load: loadOf(t),
		Instrument: t.Instrument.Name, CrossCheck: t.CrossCheck, Passive: t.Passive,
		Trials: []string{}, Failed: []string{}, Outliers: []string{}, Marks: []string{},
	}
	var values []float64
	var delays delays
	var windows windows
	for _, t := range trials {
		m.Marks = append(m.Marks, t.Marks...)
		v, ok := m.take(t)
		if !ok || !delays.take(t) || !windows.take(t) {
			m.Failed = append(m.Failed, t.ID)
			continue
		}
		m.Trials = append(m.Trials, t.ID)
		values = append(values, v)
	}
	slices.Sort(m.Marks)
	m.Marks = slices.Compact(m.Marks)
	if m.Loss != nil {
		m.Loss.Jitter = meanJitter(trials, m.Trials)
	}
	m.dist, m.Delay = delays.sumUp()
	m.Windows = windows.sumUp()
	if unit := rateUnit(t.Quantity); unit != "" && len(values) > 0 {
		m.Rate = rateOf(unit, values)
		for i, flagged := range stats.Outliers(values) {
			if flagged {
				m.Outliers = append(m.Outliers, m.Trials[i])
			}
		}
	}
	return m
}

// meanJitter is the mean over the taken trials that have jitter.
func meanJitter(trials []record.Trial, taken []string) *time.Duration {
	var sum, n time.Duration
	for _, t := range trials {
		if t.HasJitter() && slices.Contains(taken, t.ID) {
			sum, n = sum+t.Delivery.Jitter, n+1
		}
	}
	if n == 0 {
		return nil
	}
	mean := sum / n
	return &mean
}

// take adds one trial's result, except its delays; ok is false if it has none.
func (m *Measurement) take(t record.Trial) (value float64, ok bool) {
	switch {
	case t.Throughput != nil:
		return float64(t.Throughput.BitsPerSecond), true
	case t.Latency != nil:
		return 0, true
	case t.Delivery != nil:
		if m.Loss == nil {
			m.Loss = &Loss{}
		}
		m.Loss.Sent += t.Delivery.Sent
		m.Loss.Lost += t.Delivery.Lost
		m.Loss.ReceiverDrops += t.Delivery.ReceiverDrops
		m.Loss.Reordered += t.Delivery.Reordered
		m.Loss.Duplicated += t.Delivery.Duplicated
		if t.Quantity == record.QPacketRate {
			return float64(t.Delivery.PacketRate), true
		}
		return float64(t.Delivery.ReceivedBits), true
	case t.Requests != nil:
		return t.Requests.PerSecond, true
	case t.PathMTU != nil:
		if m.MTU == nil {
			m.MTU = &MTU{Bytes: t.PathMTU.Wanted}
		}
		m.MTU.Rounds++
		if t.PathMTU.Passed {
			m.MTU.Passed++
		}
		return 0, true
	}
	return 0, false
}

func rateUnit(q record.Quantity) string {
	switch q {
	case record.QThroughput, record.QStream, record.QProbe, record.QDelivery:
		return "bit/s"
	case record.QPacketRate:
		return "packets/s"
	case record.QRequests:
		return "requests/s"
	}
	return ""
}

func rateOf(unit string, values []float64) *Rate {
	mean, low, high := meanOf(values)
	return &Rate{Unit: unit, Mean: mean, Low: low, High: high, Values: values}
}

// meanOf is a mean over trials with its two-sided 95 % interval, which one trial does
// not have. The interval is Student's t on the logarithms, as for ratios, so noisy
// rates never reach 0. Values that include 0 use Student's t directly.
func meanOf(values []float64) (mean float64, low, high *float64) {
	e, err := stats.Mean(values)
	if err != nil {
		return values[0], nil, nil
	}
	pairs := make([]stats.Pair, len(values))
	for i, v := range values {
		pairs[i] = stats.Pair{A: v, B: e.Mean}
	}
	if r, err := stats.Ratio(pairs, 1); err == nil {
		from, to := r.CI.Low*e.Mean, r.CI.High*e.Mean
		return e.Mean, &from, &to
	}
	from := max(0, e.CI.Low)
	return e.Mean, &from, &e.CI.High
}
