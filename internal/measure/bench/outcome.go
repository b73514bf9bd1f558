// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"time"

	"github.com/drayage/dray/internal/measure/search"
	"github.com/drayage/dray/internal/result/record"
)

// outcome converts a record for a search: the packets due, sent and received. A
// failed trial is a *search.RejectedError, so it is repeated. It refuses a record
// whose instrument does not report unsent packets, since these must count as
// lost.
func outcome(t record.Trial) (search.Outcome, error) {
	if t.Error != "" {
		return search.Outcome{}, &search.RejectedError{Reason: t.Error}
	}
	if t.Delivery == nil || t.OneWay == nil {
		return search.Outcome{}, fmt.Errorf("trial %s: %s does not report what it failed to send in time; a search needs draygen", t.ID, t.Instrument.Name)
	}
	late, err := percentile99(t.OneWay.Lateness)
	if err != nil {
		return search.Outcome{}, &search.RejectedError{Reason: fmt.Sprintf("lateness of trial %s: %v", t.ID, err)}
	}
	return search.Outcome{
		Sent: t.Delivery.Sent, Received: t.Delivery.Received, Unsent: t.OneWay.Unsent,
		ReceiverDrops: t.Delivery.ReceiverDrops, Lateness: late,
	}, nil
}

// percentile99 is the value that at most one sample in a hundred exceeds, rounded
// up to its bucket; 0 for no samples.
func percentile99(h record.Histogram) (time.Duration, error) {
	buckets, err := h.Buckets()
	if err != nil {
		return 0, err
	}
	beyond := h.Total()
	for _, b := range buckets {
		if beyond -= b.Count; beyond <= h.Total()/100 {
			return time.Duration(b.To), nil
		}
	}
	return 0, nil
}
