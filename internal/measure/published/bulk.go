// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/result/record"
)

// bulkLead is how long before the trial the bulk stream starts: its window must
// grow until it fills the bottleneck.
const bulkLead = 1500 * time.Millisecond

type runFunc func(context.Context, instrument.Endpoint, instrument.Endpoint, instrument.Params) (record.Trial, error)

// bulkShare is the bulk stream's minimum share of the bottleneck's rate: its
// headers and other traffic use the rest.
const bulkShare = 0.8

// besideBulk measures with a tool while a TCP stream sends at full speed in the
// same direction, for extra longer than the trial. It refuses a measurement that
// the stream did not outlast, or during which it did not fill the bottleneck of
// rate bit/s; 0: no bottleneck.
func besideBulk(tool instrument.Instrument, rate uint64, extra time.Duration) runFunc {
	return func(ctx context.Context, from, to instrument.Endpoint, p instrument.Params) (record.Trial, error) {
		type outcome struct {
			t   record.Trial
			err error
		}
		bulk := make(chan outcome, 1)
		go func() {
			t, err := instrument.Iperf3{}.Run(ctx, from, to, instrument.Params{Duration: p.Duration + extra})
			bulk <- outcome{t, err}
		}()
		if err := host.Sleep(ctx, bulkLead); err != nil {
			<-bulk
			return record.Trial{}, err
		}
		start := time.Now()
		t, err := tool.Run(ctx, from, to, p)
		end := time.Now() // a tool may sleep before it measures
		b := <-bulk
		if err = errors.Join(err, b.err); err != nil {
			return t, fmt.Errorf("with a bulk stream: %w", err)
		}
		t.Raw += "\n\nthe concurrent bulk stream:\n" + b.t.Raw
		if err := outlasts(b.t, start, end); err != nil {
			return t, err
		}
		return t, fills(b.t, rate)
	}
}

// outlasts returns an error if the bulk stream did not cover a measurement's time.
func outlasts(bulk record.Trial, start, end time.Time) error {
	if bulk.Start.After(start) || bulk.Start.Add(bulk.Duration).Before(end) {
		return fmt.Errorf("the bulk stream ran from %s for %v, the measurement from %s for %v: it was not under load all the time; the machine may be too busy",
			bulk.Start.Format(time.TimeOnly), bulk.Duration, start.Format(time.TimeOnly), end.Sub(start))
	}
	return nil
}

// fills returns an error if the bulk stream did not fill such a bottleneck.
func fills(bulk record.Trial, rate uint64) error {
	if rate == 0 {
		return nil
	}
	got := uint64(0)
	if bulk.Throughput != nil {
		got = bulk.Throughput.BitsPerSecond
	}
	if float64(got) < bulkShare*float64(rate) {
		return fmt.Errorf("the bulk stream reached %.1f of the bottleneck's %.0f Mb/s and did not fill it; the machine may be too busy", float64(got)/mega, float64(rate)/mega)
	}
	return nil
}
