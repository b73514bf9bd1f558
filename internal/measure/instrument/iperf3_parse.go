// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/result/record"
)

// iperf3Result is iperf3's result, or its reason for having none.
type iperf3Result struct {
	Throughput record.Throughput
	Duration   time.Duration // of the measured interval, without omitted parts
	Error      string
}

// iperf3Output is the used part of `iperf3 -J` output.
type iperf3Output struct {
	Intervals []struct {
		Sum *struct {
			BitsPerSecond float64 `json:"bits_per_second"`
			Omitted       bool    `json:"omitted"`
		} `json:"sum"`
	} `json:"intervals"`
	End struct {
		SumSent *struct {
			Retransmits *int `json:"retransmits"`
		} `json:"sum_sent"`
		SumReceived *struct {
			Seconds       float64 `json:"seconds"`
			Bytes         float64 `json:"bytes"`
			BitsPerSecond float64 `json:"bits_per_second"`
		} `json:"sum_received"`
	} `json:"end"`
	Error string `json:"error"`
}

// parseIperf3 reads the output of an iperf3 client with -J. iperf3 3.12 exits
// with 0 even if its output holds an error.
func parseIperf3(out []byte) (iperf3Result, error) {
	var o iperf3Output
	if err := json.Unmarshal(out, &o); err != nil {
		return iperf3Result{}, fmt.Errorf("output is not JSON: %w: %q", err, lastWords(out))
	}
	if o.Error != "" {
		return iperf3Result{Error: o.Error}, errors.New(o.Error)
	}
	if o.End.SumReceived == nil || o.End.SumSent == nil {
		return iperf3Result{}, errors.New("output lacks the receiver's or the sender's total")
	}
	r := iperf3Result{Throughput: record.Throughput{Traffic: "tcp"}}
	var err error
	if r.Duration, err = seconds("duration", o.End.SumReceived.Seconds); err != nil {
		return iperf3Result{}, err
	}
	if r.Duration == 0 {
		return iperf3Result{}, errors.New("the measured interval is empty")
	}
	if r.Throughput.BitsPerSecond, err = rate("received rate", o.End.SumReceived.BitsPerSecond); err != nil {
		return iperf3Result{}, err
	}
	if n := o.End.SumSent.Retransmits; n != nil {
		if *n < 0 {
			return iperf3Result{}, fmt.Errorf("%d retransmits are impossible", *n)
		}
		r.Throughput.Retransmits = *n
	}
	r.Throughput.Intervals = []uint64{}
	for _, i := range o.Intervals {
		if i.Sum == nil || i.Sum.Omitted {
			continue
		}
		bits, err := rate("interval's rate", i.Sum.BitsPerSecond)
		if err != nil {
			return iperf3Result{}, err
		}
		r.Throughput.Intervals = append(r.Throughput.Intervals, bits)
	}
	return r, nil
}
