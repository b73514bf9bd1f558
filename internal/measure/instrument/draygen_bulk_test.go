// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/test/testenv"
)

// TestBulkCommand: the sender has both streams, and both fill the queue before a packet counts.
func TestBulkCommand(t *testing.T) {
	end := func(name string) Endpoint {
		return Endpoint{Name: name, Port: name, Native: true, MTU: 1500, IP: netip.MustParseAddr("10.99.0.1")}
	}
	p := Params{Bitrate: 1_000_000, Frame: 106, DSCP: 46, Bulk: &Bulk{Bitrate: 24_000_000, Frame: 1514}}
	o, err := Draygen{Quantity: record.QStream}.wanted(end("a"), end("b"), p)
	testenv.Must(t, err)
	s, err := genCommands([]string{"draygen"}, []string{"draygen"}, end("a"), end("b"), o, time.Second)
	testenv.Must(t, err)
	client, server := strings.Join(s.client, " "), strings.Join(s.server, " ")
	for _, want := range []string{"--size 106 --rate 1000000bps --layer payload --dscp 46 --bulk 24000000bps,size=1514", "--warmup 1954"} {
		if !strings.Contains(client, want) {
			t.Errorf("%q lacks %q", client, want)
		}
	}
	if strings.Contains(server, "dscp") || strings.Contains(server, "bulk") {
		t.Errorf("the sink got %q", server)
	}
	p.DSCP, p.Bulk = 0, nil
	o, err = Draygen{Quantity: record.QStream}.wanted(end("a"), end("b"), p)
	testenv.Must(t, err)
	if got := strings.Join(o.traffic(), " "); strings.Contains(got, "dscp") || strings.Contains(got, "bulk") || o.warmup != 196 {
		t.Errorf("one stream: %q, warm-up %d", got, o.warmup)
	}
}

func TestBulkIsChecked(t *testing.T) {
	o := offer{frame: 106, bulk: &Bulk{Frame: 1514}}
	ends := func(sent, got *genBulk) genResult {
		return genResult{sender: genLine{Bulk: sent}, sink: genLine{Bulk: got}}
	}
	got, err := ends(&genBulk{Scheduled: 30, Sent: 20}, &genBulk{Received: 10, ReceiveRate: 1000}).bulk(o)
	if err != nil || *got != (record.Bulk{DatagramBytes: 1472, Scheduled: 30, Sent: 20, Received: 10, Bits: 11_776_000}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = ends(&genBulk{Scheduled: 2, Sent: 2}, nil).bulk(o); err != nil || got.Sent != 2 || got.Received != 0 {
		t.Errorf("nothing arrived: %+v, %v", got, err)
	}
	if got, err = ends(nil, nil).bulk(offer{}); got != nil || err != nil {
		t.Errorf("one stream: %+v, %v", got, err)
	}
	for want, r := range map[string]genResult{
		"rebuild":            ends(nil, nil),
		"of 20 sent and 19":  ends(&genBulk{Scheduled: 19, Sent: 20}, &genBulk{}),
		"21 packets came of": ends(&genBulk{Scheduled: 20, Sent: 20}, &genBulk{Received: 21}),
		"5 packets came of":  ends(&genBulk{Scheduled: 20, Sent: 20}, &genBulk{Received: 5, ReceiveRate: -1}),
	} {
		if _, err := r.bulk(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
