// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/stats"
)

// delays collects the distributions of several trials of one kind.
type delays struct {
	way                     string
	dists, variations, late []*stats.Dist
	unsent                  uint64
}

// take adds one trial's delays, if any; ok is false if they are malformed.
func (d *delays) take(t record.Trial) (ok bool) {
	if t.Latency != nil {
		dist, err := stats.NewDist(t.Latency.Histogram, t.Latency.Lost, 0)
		if err != nil {
			return false
		}
		d.way, d.dists = RoundTrip, append(d.dists, dist)
		return true
	}
	if t.OneWay == nil || t.Delivery == nil {
		return true
	}
	lost := t.Delivery.Lost - min(t.Delivery.Lost, t.Delivery.ReceiverDrops)
	dist, err1 := stats.NewDist(t.OneWay.Latency, lost, 0)
	late, err2 := stats.NewDist(t.OneWay.Lateness, 0, 0)
	if errors.Join(err1, err2) != nil {
		return false
	}
	d.way, d.dists, d.late = OneWay, append(d.dists, dist), append(d.late, late)
	d.variations = append(d.variations, dist.Variation(int64(t.OneWay.Min)))
	d.unsent += t.OneWay.Unsent
	return true
}

// sumUp merges the collected trials; nil if there are none.
func (d *delays) sumUp() (*stats.Dist, *Delay) {
	if len(d.dists) == 0 {
		return nil, nil
	}
	pool := stats.Pool(d.dists...)
	out := &Delay{Way: d.way, Samples: pool.Count(), Lost: pool.Lost(), Unsent: d.unsent}
	_, out.Max, _ = pool.Range()
	for _, p := range Percentiles {
		out.Quantiles = append(out.Quantiles, quantile(pool, p))
	}
	if d.way == OneWay {
		pdv, late := quantile(stats.Pool(d.variations...), 99), quantile(stats.Pool(d.late...), 99)
		out.PDV, out.Lateness = &pdv, &late
	}
	return pool, out
}

func quantile(d *stats.Dist, p float64) Quantile {
	q := Quantile{Percentile: p}
	v, err := d.Quantile(p)
	var few *stats.TooFewError
	switch {
	case err == nil:
		q.Value = v
	case errors.As(err, &few):
		q.Refused = fmt.Sprintf("takes %.0f samples", few.Need)
	default:
		q.Refused = "lost"
	}
	return q
}
