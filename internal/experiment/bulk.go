// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/instrument"
	"github.com/drayage/dray/internal/record"
)

// bulkLead is how long before the trial the bulk stream starts: its window has to
// grow until it fills the bottleneck.
const bulkLead = 1500 * time.Millisecond

type runner func(context.Context, instrument.Endpoint, instrument.Endpoint, instrument.Params) (record.Trial, error)

// besideBulk measures with a tool while a TCP stream sends all it can the same way,
// and refuses a measurement which that did not outlast.
func besideBulk(tool instrument.Instrument) runner {
	return func(ctx context.Context, from, to instrument.Endpoint, p instrument.Params) (record.Trial, error) {
		type outcome struct {
			t   record.Trial
			err error
		}
		bulk := make(chan outcome, 1)
		go func() {
			t, err := instrument.Iperf3{}.Run(ctx, from, to, instrument.Params{Duration: p.Duration + bulkExtra})
			bulk <- outcome{t, err}
		}()
		if err := sleep(ctx, bulkLead); err != nil {
			<-bulk
			return record.Trial{}, err
		}
		t, err := tool.Run(ctx, from, to, p)
		b := <-bulk
		if err = errors.Join(err, b.err); err != nil {
			return t, fmt.Errorf("beside a bulk stream: %w", err)
		}
		t.Raw += "\n\nthe bulk stream beside it:\n" + b.t.Raw
		return t, outlasts(b.t, t)
	}
}

// outlasts is an error where the bulk stream did not cover the trial.
func outlasts(bulk, t record.Trial) error {
	if end := t.Start.Add(t.Duration); bulk.Start.After(t.Start) || bulk.Start.Add(bulk.Duration).Before(end) {
		return fmt.Errorf("the bulk stream ran from %s for %v, the measurement from %s for %v: it was not under load all the time; is the machine too busy?",
			bulk.Start.Format(time.TimeOnly), bulk.Duration, t.Start.Format(time.TimeOnly), t.Duration)
	}
	return nil
}
