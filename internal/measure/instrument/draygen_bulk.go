// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/drayage/dray/internal/result/record"
)

// Bulk is a second stream, which shares the sender and its port with the measured one.
type Bulk struct {
	Bitrate uint64 // bit/s of UDP payload
	Frame   int    // bytes of each frame without FCS
}

// bulkWarmup is how long both streams run before the first packet counts: queues fill.
const bulkWarmup = time.Second

// marked are the sender's options for the DSCP and for a second stream.
func (o offer) marked() []string {
	var options []string
	if o.dscp != 0 {
		options = append(options, "--dscp", strconv.Itoa(o.dscp))
	}
	if o.bulk != nil {
		options = append(options, "--bulk", fmt.Sprintf("%dbps,size=%d", o.bulk.Bitrate, o.bulk.Frame))
	}
	return options
}

// genBulk is one end's report of a second stream.
type genBulk struct {
	Scheduled   uint64  `json:"scheduled"`
	Sent        uint64  `json:"sent"`
	Received    uint64  `json:"received"`
	ReceiveRate float64 `json:"receive_pps"`
}

// bulk is the second stream in the record's terms; nil: there was none.
func (r genResult) bulk(o offer) (*record.Bulk, error) {
	if o.bulk == nil {
		return nil, nil
	}
	sent, got := r.sender.Bulk, r.sink.Bulk
	switch {
	case sent == nil:
		return nil, errors.New("the sender says nothing of its second stream: rebuild draygen with `make build`")
	case got == nil:
		got = &genBulk{} // nothing of it arrived
	case sent.Sent > sent.Scheduled || got.Received > sent.Sent || !(got.ReceiveRate >= 0):
		return nil, fmt.Errorf("of its second stream %d packets came of %d sent and %d scheduled: impossible", got.Received, sent.Sent, sent.Scheduled)
	}
	payload := o.bulk.Frame - o.headers()
	return &record.Bulk{
		DatagramBytes: payload, Scheduled: sent.Scheduled, Sent: sent.Sent, Received: got.Received,
		Bits: uint64(got.ReceiveRate * float64(8*payload)),
	}, nil
}
