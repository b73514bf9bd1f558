// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"time"

	"github.com/drayage/dray/internal/result/record"
)

// genFormat is the supported version of draygen's output, and genBits its
// histogram resolution: 64 buckets an octave.
const (
	genFormat = 1
	genBits   = 6
)

// genLine is the used part of a line of draygen's output. See
// dataplane/gen/README.md for the fields' meanings.
type genLine struct {
	Format int    `json:"draygen"`
	Event  string `json:"event"`
	Role   string `json:"role"`

	// of both
	CPUNs  int64 `json:"cpu_ns"`
	WallNs int64 `json:"wall_ns"`
	CPUs   struct {
		Polling        int   `json:"polling_threads"`
		WaitedNs       int64 `json:"waited_ns"`
		Oversubscribed bool  `json:"oversubscribed"`
	} `json:"cpus"`

	// of a loop
	Forward *struct {
		Sender genLine `json:"sender"`
		Sink   genLine `json:"sink"`
	} `json:"forward"`

	// of a sender
	StartedNs int64         `json:"started_ns"`
	EndedNs   int64         `json:"ended_ns"`
	SendRate  float64       `json:"send_pps"`
	ElapsedNs int64         `json:"elapsed_ns"`
	Sent      uint64        `json:"sent"`
	Unsent    uint64        `json:"unsent"`
	Full      uint64        `json:"full"`
	FullNs    int64         `json:"full_ns"`
	Lateness  *genHistogram `json:"lateness"`

	// of a sink
	ReceiveRate float64              `json:"receive_pps"`
	FirstNs     int64                `json:"first_ns"`
	LastNs      int64                `json:"last_ns"`
	Received    uint64               `json:"received"`
	Bytes       uint64               `json:"received_bytes"`
	Duplicates  uint64               `json:"duplicates"`
	Reordered   uint64               `json:"reordered"`
	Foreign     uint64               `json:"foreign"`
	Corrupt     uint64               `json:"corrupt"`
	OtherStream uint64               `json:"other_stream"`
	SocketDrops uint64               `json:"socket_drops"`
	ClockErrors uint64               `json:"clock_errors"`
	OneWay      *genHistogram        `json:"one_way"`
	RoundTrip   *genHistogram        `json:"round_trip"` // of a requester
	Intended    *genHistogram        `json:"one_way_intended"`
	IPDV        *genHistogram        `json:"ipdv"`
	Jitter      *float64             `json:"jitter_ns"`
	Windows     map[string]genWindow `json:"windows"`
	Bulk        *genBulk             `json:"bulk"` // of both; nil: there was none
}

type genHistogram struct {
	N      int64      `json:"n"`
	Min    *int64     `json:"min"`
	Max    *int64     `json:"max"`
	Counts [][2]int64 `json:"counts"`
}

// genResult is both ends' report of one stream, checked for consistency.
type genResult struct {
	sender, sink                      genLine
	latency, intended, lateness, ipdv record.Histogram
	min, max                          time.Duration
}

// parseDraygen reads the output of one stream's sender and sink.
func parseDraygen(client, server []byte) (genResult, error) {
	sender, err := lastResult(client, "send")
	if err != nil {
		return genResult{}, err
	}
	sink, err := lastResult(server, "sink")
	if err != nil {
		return genResult{sender: sender}, err
	}
	return joined(sender, sink)
}

// errClocks follows a number. Rates and losses are still valid.
var errClocks = errors.New("packets were stamped in the future or long ago: sender and sink do not read the same clock")

// errTooBusy means that the sender had a CPU only when the time of every packet was over. At the
// rate max nothing is unsent: then it had none for most of the time for which its port was full.
var errTooBusy = errors.New("the sender sent nothing: it had no CPU until the trial was over; stop other programs, or measure for longer")

// joined combines both ends' reports of one stream.
func joined(sender, sink genLine) (genResult, error) {
	r := genResult{sender: sender, sink: sink}
	var err error
	s, k := r.sender, r.sink
	switch {
	case s.Sent == 0 && (s.Unsent > 0 || s.CPUs.WaitedNs > s.FullNs/2):
		return r, errTooBusy
	case s.Sent == 0:
		return r, errors.New("the sender sent nothing")
	case s.Sent > math.MaxInt64 || s.Unsent > math.MaxInt64-s.Sent:
		return r, fmt.Errorf("the sender claims %d sent and %d unsent", s.Sent, s.Unsent)
	case k.Received > s.Sent:
		return r, fmt.Errorf("%d different packets received of %d sent: impossible", k.Received, s.Sent)
	case s.ElapsedNs < 0 || s.ElapsedNs > int64(maxTrial) || k.LastNs < k.FirstNs || k.LastNs-k.FirstNs > int64(maxTrial):
		return r, errors.New("impossible times in its output")
	}
	if r.lateness, err = s.Lateness.record("lateness", s.Sent); err != nil {
		return r, err
	}
	if k.ClockErrors > 0 {
		return r, fmt.Errorf("%d %w", k.ClockErrors, errClocks)
	}
	if r.latency, err = k.OneWay.record("one_way", k.Received); err != nil {
		return r, err
	}
	if r.intended, err = k.Intended.record("one_way_intended", k.Received); err != nil {
		return r, err
	}
	if got := uint64(r.latency.Total()); got != k.Received || uint64(r.intended.Total()) != got {
		return r, fmt.Errorf("%d packets received, and %d and %d times of them", k.Received, got, r.intended.Total())
	}
	if r.ipdv, err = k.IPDV.record("ipdv", math.MaxUint64); err != nil {
		return r, err
	}
	if k.Received > 0 {
		if k.OneWay.Min == nil || k.OneWay.Max == nil || *k.OneWay.Min < 0 || *k.OneWay.Max < *k.OneWay.Min {
			return r, errors.New("impossible one-way times in its output")
		}
		r.min, r.max = time.Duration(*k.OneWay.Min), time.Duration(*k.OneWay.Max)
	}
	if k.Jitter != nil && !(*k.Jitter >= 0 && *k.Jitter < float64(maxTrial)) {
		return r, fmt.Errorf("jitter of %v ns is impossible", *k.Jitter)
	}
	return r, nil
}

// maxTrial bounds every time that a program may report.
const maxTrial = 100 * 24 * time.Hour

// lastResult finds the summary line of a program's run.
func lastResult(out []byte, role string) (genLine, error) {
	var found *genLine
	for _, text := range bytes.Split(out, []byte("\n")) {
		var line genLine
		if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
			continue
		}
		if err := json.Unmarshal(text, &line); err != nil {
			return line, fmt.Errorf("the %s's output is malformed: %w", role, err)
		}
		if line.Format != genFormat {
			return line, fmt.Errorf("output of format %d; this program reads format %d: rebuild both with `make build`", line.Format, genFormat)
		}
		if line.Event == "result" && line.Role == role {
			found = &line
		}
	}
	if found == nil {
		return genLine{}, fmt.Errorf("no result of the %s: %q", role, lastWords(out))
	}
	return *found, nil
}

// record converts the histogram and its counts; it must hold at most most
// samples, and as many as it states.
func (h *genHistogram) record(name string, most uint64) (record.Histogram, error) {
	if h == nil {
		return record.Histogram{}, fmt.Errorf("no %s in its output", name)
	}
	lowest, counts := make([]int64, len(h.Counts)), make([]int64, len(h.Counts))
	for i, c := range h.Counts {
		lowest[i], counts[i] = c[0], c[1]
	}
	out, err := record.FromLogLinear(genBits, lowest, counts)
	if err != nil {
		return out, fmt.Errorf("%s: %w", name, err)
	}
	if n := out.Total(); n != h.N || uint64(n) > most {
		return out, fmt.Errorf("%s has %d samples but claims %d, of at most %d", name, n, h.N, most)
	}
	return out, nil
}

// span is the duration of the stream: arrivals are divided by the longer of the
// sender's and the receiver's time, since a receiver that wakes late sees a
// shorter stream.
func (r genResult) span() time.Duration {
	return time.Duration(max(r.sender.ElapsedNs, r.sink.LastNs-r.sink.FirstNs))
}

// starved reports whether a polling sender or sink lacked its own CPU, according
// to the scheduler. A sleeping one may share its CPU.
func (r genResult) starved() bool {
	for _, line := range []genLine{r.sender, r.sink} {
		if line.CPUs.Polling > 0 && line.CPUs.Oversubscribed {
			return true
		}
	}
	return false
}

// delivery is the result in the record's terms.
func (r genResult) delivery(q record.Quantity, o offer, p Params) *record.Delivery {
	bits := o.payloadBits()
	sending, span := time.Duration(r.sender.ElapsedNs), r.span()
	d := &record.Delivery{
		OfferedBits: uint64(math.Round(o.perSec * bits)), OfferedRate: uint64(math.Round(o.perSec)),
		DatagramBytes: o.frame - o.headers(), FrameBytes: o.frame + o.checksum(),
		Sent: r.sender.Sent, Received: r.sink.Received, Lost: r.sender.Sent - r.sink.Received,
		Reordered: r.sink.Reordered, Duplicated: r.sink.Duplicates,
		Foreign:  r.sink.Foreign + r.sink.Corrupt + r.sink.OtherStream,
		SentBits: perSecond(float64(r.sender.Sent)*bits, sending), SentRate: perSecond(float64(r.sender.Sent), sending),
		ReceivedBits: perSecond(float64(r.sink.Received)*bits, span), PacketRate: perSecond(float64(r.sink.Received), span),
	}
	if q == record.QStream || q == record.QThroughput {
		d.OfferedBits = p.Bitrate
	}
	d.ReceiverDrops = min(r.sink.SocketDrops, d.Lost)
	if r.sink.Jitter != nil {
		d.Jitter = time.Duration(*r.sink.Jitter)
	}
	return d
}

func (r genResult) oneWay() *record.OneWay {
	return &record.OneWay{
		Latency: r.latency, Intended: r.intended, Lateness: r.lateness, IPDV: r.ipdv,
		Min: r.min, Max: r.max, Unsent: r.sender.Unsent, Held: r.sender.Full, HeldFor: time.Duration(r.sender.FullNs),
	}
}

// throughput is the payload that arrived, over the whole stream.
func (r genResult) throughput(o offer) *record.Throughput {
	bits := float64(r.sink.Received) * o.payloadBits()
	return &record.Throughput{
		Traffic: "udp", BitsPerSecond: perSecond(bits, r.span()), Intervals: []uint64{}, Held: r.sender.Full, HeldFor: time.Duration(r.sender.FullNs),
	}
}

// lateShare is the share of samples above a limit.
func lateShare(h record.Histogram, limit time.Duration) float64 {
	var late, all float64
	for _, c := range h.Counts {
		all += float64(c.Count)
		if c.Value > int64(limit) {
			late += float64(c.Count)
		}
	}
	return late / max(1, all)
}

var genCounts = regexp.MustCompile(`, ?"counts": ?\[[0-9\[\], ]*\]`)

// genSummary is draygen's output without histogram counts, which the record holds
// already.
func genSummary(out []byte) []byte { return genCounts.ReplaceAll(out, nil) }
