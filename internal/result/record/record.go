// SPDX-License-Identifier: Apache-2.0

// Package record holds the raw outcome of trials, with their environment. Statistics
// and reports use records and nothing else.
package record

import (
	"slices"
	"time"
)

// Schema is the version of the record format.
//
// Schema 3 states the traffic of a throughput. Schema 2 did not, and schema 1 had only
// round trips, which bounded verdicts differently: both are refused.
const Schema = 3

// Trial is one measured interval: one line of a records file. If Error is empty, the
// result that Quantity names is set: Throughput, Latency, Requests, PathMTU, or
// Delivery (for QStream, QProbe, QDelivery and QPacketRate). OneWay accompanies
// Delivery if the instrument stamps its packets. Each round and direction measures a
// link at most once per Quantity, load and instrument.
type Trial struct {
	Schema    int    `json:"schema"`
	Run       string `json:"run"` // id of the run
	ID        string `json:"id"`  // unique within the run
	Chain     string `json:"chain"`
	Link      string `json:"link"` // empty: Function is measured
	Function  string `json:"function,omitempty"`
	From      string `json:"from"` // "function.port" of the sender (client)
	To        string `json:"to"`   // "function.port" of the receiver (server)
	Transport string `json:"transport"`
	// Runtimes maps each end to the runtime of its function.
	Runtimes map[string]string `json:"runtimes"`
	// Quantity is what was measured.
	Quantity   Quantity   `json:"quantity"`
	Instrument Instrument `json:"instrument"`
	// Load is other traffic on the link meanwhile; nil: none.
	Load   *Load  `json:"load,omitempty"`
	Warmup bool   `json:"warmup"` // kept for completeness, never evaluated
	Seed   uint64 `json:"seed"`   // of the random order
	Order  int    `json:"order"`  // position in the run, from 0
	Round  int    `json:"round"`  // repetition of this cell, from 0
	// Looks is the number of points at which the run could end; 0 and 1: one. Each has
	// a confidence level that leaves the others their share. Look is the first, from 0,
	// at which the trial counts.
	Looks    int           `json:"looks,omitempty"`
	Look     int           `json:"look,omitempty"`
	Start    time.Time     `json:"start"`
	Duration time.Duration `json:"duration"` // ns
	// Marks are doubts about the figure: the Mark constants.
	Marks []string `json:"marks"`
	// Error says why there is no result. A failed trial is also a record.
	Error string `json:"error,omitempty"`
	// CrossCheck says that another instrument judges this quantity, or nothing does:
	// the figure is shown, but decides nothing.
	CrossCheck bool `json:"cross_check,omitempty"`
	// Passive says that nothing was sent to measure the link: the figures are of the
	// application's own traffic, as its ports report it. OneWay has the stamped packets
	// of it, and Delivery counts all.
	Passive    bool        `json:"passive,omitempty"`
	Throughput *Throughput `json:"throughput,omitempty"`
	OneWay     *OneWay     `json:"one_way,omitempty"`
	Latency    *Latency    `json:"latency,omitempty"`
	Delivery   *Delivery   `json:"delivery,omitempty"`
	Windows    Windows     `json:"windows,omitempty"` // of messages that are due in slots; nil: none were
	Requests   *Requests   `json:"requests,omitempty"`
	PathMTU    *PathMTU    `json:"path_mtu,omitempty"`
	Compute    *Compute    `json:"compute,omitempty"` // of a function
	Bench      *Bench      `json:"bench,omitempty"`   // of a trial of a matrix
	// Experiment is set for a trial of a published experiment.
	Experiment *Experiment `json:"experiment,omitempty"`
	Env        Environment `json:"environment"`
	// Raw is the instrument's verbatim output, without colours and, beyond 64 KiB,
	// without its middle. Samples in Latency are not repeated here.
	Raw string `json:"raw,omitempty"`
}

// Marks of a trial.
const (
	MarkOversubscribed = "oversubscribed"  // more runnable threads than CPUs
	MarkFewCPUs        = "few CPUs"        // one thread was both ends: fewer CPUs than ends and programs between them
	MarkGovernor       = "governor"        // the frequency governor is not "performance"
	MarkBusy           = "busy"            // other work used over 20 % of the machine just before the trial
	MarkStolen         = "stolen"          // the hypervisor took over 2 % of the CPU time
	MarkEmulated       = "emulated"        // a virtual machine without hardware virtualisation
	MarkLab            = "lab"             // measured inside a VM that replaces the host (dray lab)
	MarkSimulatedHosts = "simulated hosts" // the link's hosts were network namespaces of one machine, with one clock
	MarkLoadMissed     = "load missed"     // achieved load, or sent rate, over 5 % off the requested one
	MarkShared         = "shared"          // the functions' own commands ran and used the link freely
	MarkStalled        = "stalled"         // a lost message ended the ping-pong early; see Latency.Stalled
	MarkLate           = "late sender"     // the generator sent late: see OneWay.Lateness
	MarkParallel       = "parallel"        // another dray, with another state directory, was measuring too
)

// Mark adds the marks that the trial does not have yet.
func (t *Trial) Mark(marks ...string) {
	for _, m := range marks {
		if !slices.Contains(t.Marks, m) {
			t.Marks = append(t.Marks, m)
		}
	}
}

// Quantity is what a trial measures.
type Quantity string

const (
	QThroughput Quantity = "throughput"  // bit/s: TCP goodput, or payload of datagrams received
	QStream     Quantity = "stream"      // stamped packets at the link's load: one-way latency, loss, order, jitter
	QProbe      Quantity = "probe"       // the same with small packets at a low rate, on an otherwise idle link
	QLatency    Quantity = "latency"     // round-trip samples of a ping-pong
	QDelivery   Quantity = "delivery"    // UDP at an offered rate: loss, order, jitter
	QPacketRate Quantity = "packet_rate" // 64-byte frames (84 over IPv6) at an offered rate
	QRequests   Quantity = "requests"    // 1-byte request/response, transactions/s
	QPathMTU    Quantity = "path_mtu"    // largest packet that passes unfragmented
)

// Instrument is the measuring program.
type Instrument struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Client  []string `json:"client"` // argv
	Server  []string `json:"server"` // argv
	// Placement is its location: "host program in the function's network namespace and
	// cgroup".
	Placement string `json:"placement"`
}

// Load is the traffic on the link during another measurement, in the trial's direction.
// Rates count UDP payload, not headers.
type Load struct {
	Instrument Instrument `json:"instrument"`
	Offered    uint64     `json:"offered"` // bit/s
	// Achieved is the link's delivered rate, bit/s, read at the receiver: packets that
	// its program took, and packets it was too slow to take.
	Achieved      uint64 `json:"achieved"`
	Sent          uint64 `json:"sent"`           // datagrams, over the load's lifetime
	Lost          uint64 `json:"lost"`           // datagrams, including ReceiverDrops
	ReceiverDrops uint64 `json:"receiver_drops"` // see Delivery
}

// Throughput is the rate of one TCP stream, or of one generator that sends datagrams to
// a program as fast as it can. The latter also has a Delivery, with sizes and losses.
type Throughput struct {
	Traffic       string   `json:"traffic"`         // "udp" or "tcp"
	BitsPerSecond uint64   `json:"bits_per_second"` // payload received, over the measured interval
	Intervals     []uint64 `json:"intervals"`       // bit/s of each part of the interval, at the sender
	Retransmits   int      `json:"retransmits"`
	// Held counts how often the port took nothing, so that the sender waited (udp).
	Held uint64 `json:"held,omitempty"`
	// HeldFor is how long it waited for that, ns; 0 with Held: unknown.
	HeldFor time.Duration `json:"held_for,omitempty"`
}

// Latency is a distribution of round-trip times of UDP messages in a closed loop: the
// next message is sent at its scheduled time, but never before the last answer.
type Latency struct {
	// Histogram holds round-trip times in nanoseconds as HDR counts. If an outstanding
	// answer delayed a request, its time counts from when it was due, not sent. So
	// there is no coordinated omission with a slow link. Time that the client itself
	// lost is not counted.
	Histogram Histogram `json:"histogram"`
	// Halved says that the instrument's own figures in Raw are half round trips; the
	// histogram here never is halved.
	Halved bool `json:"instrument_halves"`
	// Sent counts the requests whose answers are in Histogram, and Lost. Both exclude
	// requests of the instrument's own warm-up and of its last 50 ms.
	Sent uint64 `json:"sent"`
	// Lost counts requests without an answer. Each is an observation beyond every
	// bound. The instrument waits for it until the trial ends. So Lost is 0 or 1, and
	// later samples are missing, not good.
	Lost         uint64        `json:"lost"`
	Duplicated   uint64        `json:"duplicated"`
	Reordered    uint64        `json:"reordered"`
	LateSends    uint64        `json:"late_sends"`    // the client itself was late by over a tenth of the interval
	Stalled      time.Duration `json:"stalled"`       // from the lost request to the end, ns; 0 if none was lost
	MessageBytes int           `json:"message_bytes"` // UDP payload
	Rate         uint64        `json:"rate"`          // messages/s requested
	MinRTT       time.Duration `json:"min_rtt"`       // ns
}

// OneWay holds the results from a stream's packet stamps. Sender and receiver read one
// clock (CLOCK_MONOTONIC of one host), so nothing is halved or estimated.
type OneWay struct {
	// Latency is the time from handing a packet to the port until the receiving program
	// has it, for each packet received once.
	Latency Histogram `json:"latency"`
	// Intended is the same from the time the packet was due instead: Latency and
	// Lateness together.
	Intended Histogram `json:"intended"`
	// Lateness is the generator's: from when a packet was due to when it was handed to
	// the port. The machine or the port's back-pressure causes it. It is kept apart, so
	// that a late generator does not look like a slow link.
	Lateness Histogram `json:"lateness"`
	// IPDV holds |D(i)−D(i−1)| of consecutive packets (RFC 3393).
	IPDV Histogram     `json:"ipdv"`
	Min  time.Duration `json:"min"` // exactly, of Latency, ns
	Max  time.Duration `json:"max"` // exactly, of Latency, ns
	// Unsent counts due packets that were never sent, since the generator was too far
	// behind. They are no samples, and count against a bound.
	Unsent uint64 `json:"unsent"`
	// Held counts how often the port took nothing, so that the sender waited. If it is
	// not 0, the port caused part of Lateness, and Intended is the conservative figure.
	Held uint64 `json:"held"`
	// HeldFor is how long it waited for that, ns; 0 with Held: unknown.
	HeldFor time.Duration `json:"held_for,omitempty"`
	// Coarse is set if the instrument's buckets are wide; then Latency has the most that
	// each delay may be, and Min the least.
	Coarse *CoarseTimes `json:"coarse,omitempty"`
	// Clocks is for delays between two clocks; then Latency has the least that each delay
	// may be. Only live traffic has it, which is never stored.
	Clocks *TwoClocks `json:"-"`
}

// CoarseTimes are the other bounds of delays that are known by their buckets.
type CoarseTimes struct {
	Least Histogram     `json:"least"` // the least that each delay may be
	Min   time.Duration `json:"min"`   // the most that the least delay may be, ns
}

// TwoClocks is what is known of delays between two clocks whose difference is only
// bounded.
type TwoClocks struct {
	Latest Histogram // the most that each delay may be
	Above  Histogram // how far each exceeds the least of its trial, which needs no common clock
	Halves Histogram // half of the round trips that these delays are part of
}

// Histogram is a histogram's non-zero counts, exactly. Its buckets are an HDR
// histogram's (Lowest, Highest, Digits), or log-linear if Bits is set. Then values
// below 2^Bits have one bucket each, and every power of two from there on has 2^Bits of
// equal width.
type Histogram struct {
	Lowest  int64         `json:"lowest,omitempty"`  // HDR: lowest discernible value, ns
	Highest int64         `json:"highest,omitempty"` // HDR: highest trackable value, ns
	Digits  int           `json:"digits,omitempty"`  // HDR: significant decimal digits
	Bits    int           `json:"bits,omitempty"`    // log-linear
	Counts  []BucketCount `json:"counts"`            // ascending by Value
}

// BucketCount counts the samples of the bucket with highest value Value.
type BucketCount struct {
	Value int64 `json:"v"` // ns
	Count int64 `json:"n"`
}

// Delivery is the fate of UDP datagrams, read at the receiver. Rates count UDP payload,
// not headers.
type Delivery struct {
	OfferedBits   uint64 `json:"offered_bits_per_second"` // requested
	SentBits      uint64 `json:"sent_bits_per_second"`    // achieved by the sender
	ReceivedBits  uint64 `json:"received_bits_per_second"`
	DatagramBytes int    `json:"datagram_bytes"` // UDP payload
	FrameBytes    int    `json:"frame_bytes"`    // on an Ethernet wire, with FCS
	// Sent = Received + Lost. A receiver alone cannot see datagrams lost at the end of
	// the stream; the sender's count includes them.
	Sent      uint64 `json:"sent"`
	Received  uint64 `json:"received"`
	Lost      uint64 `json:"lost"`
	Reordered uint64 `json:"reordered"`
	// Duplicated counts further copies of packets in Received.
	Duplicated uint64 `json:"duplicated"`
	// Foreign counts received packets from outside the stream.
	Foreign uint64 `json:"foreign"`
	// ReceiverDrops counts the part of Lost that the link delivered, but that the
	// receiving program was too slow to take from its socket's buffer. The link's own
	// loss is Lost − ReceiverDrops.
	ReceiverDrops uint64 `json:"receiver_drops"`
	// Jitter is the RFC 3550 estimator at the end of the trial, ns.
	Jitter      time.Duration `json:"jitter"`
	OfferedRate uint64        `json:"offered_packets_per_second"`
	SentRate    uint64        `json:"sent_packets_per_second"`
	PacketRate  uint64        `json:"packets_per_second"` // received
	Bulk        *Bulk         `json:"bulk,omitempty"`     // a second stream of the same sender; nil: there was none
}

// Bulk is what arrived of a stream that shared the port with the measured one.
type Bulk struct {
	DatagramBytes int    `json:"datagram_bytes"`  // UDP payload
	Scheduled     uint64 `json:"scheduled"`       // packets whose time came
	Sent          uint64 `json:"sent"`            // of these, since the measured stream began
	Received      uint64 `json:"received"`        // of the sent ones
	Bits          uint64 `json:"bits_per_second"` // of payload, between the first and the last that arrived
}

// PathMTU is the largest packet that passed, and whether the wanted size did.
type PathMTU struct {
	Wanted  int  `json:"wanted"`  // bytes of L3 packet
	Passed  bool `json:"passed"`  // Wanted passed unfragmented, and so did an answer of that size
	Largest int  `json:"largest"` // largest that passed among those tried; Wanted if Passed; 0: none did
}

// Requests is the outcome of a closed loop of 1-byte requests and responses.
type Requests struct {
	Protocol  string        `json:"protocol"` // "tcp" or "udp"
	PerSecond float64       `json:"per_second"`
	MeanRTT   time.Duration `json:"mean_rtt"` // ns, the full round trip
}

// Environment describes the machine during a trial.
type Environment struct {
	Kernel     string            `json:"kernel"`
	CmdLine    string            `json:"cmdline"`
	OS         string            `json:"os"`
	CPUModel   string            `json:"cpu_model"`
	CPUs       []int             `json:"cpus"`
	Isolated   []int             `json:"isolated"`
	Governor   string            `json:"governor"`
	Virtual    string            `json:"virtual"`
	Realtime   bool              `json:"realtime"`
	HugePages  map[string]int    `json:"hugepages"`            // "2Mi" → pages
	LoadBefore float64           `json:"load_before"`          // 1-minute load average
	BusyDuring float64           `json:"busy_during"`          // share of all CPU time not idle, 0–1, by everyone
	Stolen     float64           `json:"stolen"`               // share of CPU time stolen by the hypervisor, 0–1
	OtherRuns  int               `json:"other_runs,omitempty"` // other dray processes that were measuring
	Pinning    map[string][]int  `json:"pinning"`              // function → CPUs; absent: any
	Offloads   map[string]string `json:"offloads"`             // "function.port" → "tso on, gro on, tx-checksum off"
	Engines    map[string]string `json:"engines"`              // program → version
	Qdiscs     map[string]string `json:"qdiscs"`               // "function.port", or "link: function.port at the switch" → as read back
	Dray       string            `json:"dray"`                 // version of this program
}
