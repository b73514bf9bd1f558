// SPDX-License-Identifier: Apache-2.0

// Package record holds the raw outcome of trials, with the environment they
// were made in. Statistics and reports are made from records and nothing else.
package record

import (
	"slices"
	"time"
)

// Schema is the version of the record format.
//
// Schema 3 says of a throughput what traffic it is of. Schema 2 did not, and schema 1
// had round trips only, which bound a verdict in another way: both are refused.
const Schema = 3

// Trial is one measured interval: one line of a records file. Where Error is
// empty the result that Quantity names is set: Throughput, Latency, Requests,
// PathMTU, or Delivery (for QStream, QProbe, QDelivery and QPacketRate), which OneWay
// accompanies if the instrument stamps its packets. A link is measured at
// most once under each triple of Quantity, load and instrument in a round and
// direction.
type Trial struct {
	Schema    int    `json:"schema"`
	Run       string `json:"run"` // id of the run that made it
	ID        string `json:"id"`  // unique within the run
	Chain     string `json:"chain"`
	Link      string `json:"link"`
	From      string `json:"from"` // "function.port" of the sender (client)
	To        string `json:"to"`   // "function.port" of the receiver (server)
	Transport string `json:"transport"`
	// Runtimes maps each end to the runtime of its function.
	Runtimes map[string]string `json:"runtimes"`
	// Quantity is what was measured.
	Quantity   Quantity   `json:"quantity"`
	Instrument Instrument `json:"instrument"`
	// Load is what else ran on the link meanwhile; nil: nothing.
	Load   *Load  `json:"load,omitempty"`
	Warmup bool   `json:"warmup"` // kept for completeness, never evaluated
	Seed   uint64 `json:"seed"`   // of the random order
	Order  int    `json:"order"`  // position in the run, from 0
	Round  int    `json:"round"`  // repetition of this cell, from 0
	// Looks is at how many points the run could end, each judged at a level of
	// confidence that leaves the others their share; 0 and 1: at one. Look is the
	// first of them, from 0, that the trial counts at.
	Looks    int           `json:"looks,omitempty"`
	Look     int           `json:"look,omitempty"`
	Start    time.Time     `json:"start"`
	Duration time.Duration `json:"duration"` // ns
	// Marks are doubts that travel with the figure: the Mark constants.
	Marks []string `json:"marks"`
	// Error says why there is no result. A trial with an error is a record too.
	Error string `json:"error,omitempty"`
	// CrossCheck says that another instrument judges this quantity, or nothing
	// does: the figure is shown beside, and never decides.
	CrossCheck bool        `json:"cross_check,omitempty"`
	Throughput *Throughput `json:"throughput,omitempty"`
	OneWay     *OneWay     `json:"one_way,omitempty"`
	Latency    *Latency    `json:"latency,omitempty"`
	Delivery   *Delivery   `json:"delivery,omitempty"`
	Requests   *Requests   `json:"requests,omitempty"`
	PathMTU    *PathMTU    `json:"path_mtu,omitempty"`
	Bench      *Bench      `json:"bench,omitempty"` // of a trial of a matrix
	// Experiment is set of a trial of a published experiment.
	Experiment *Experiment `json:"experiment,omitempty"`
	Env        Environment `json:"environment"`
	// Raw is the instrument's own output, verbatim but for colours and, beyond
	// 64 KiB, its middle. Samples that went into Latency are not repeated here.
	Raw string `json:"raw,omitempty"`
}

// Marks of a trial.
const (
	MarkOversubscribed = "oversubscribed"  // more threads want a CPU at once than there are CPUs
	MarkFewCPUs        = "few CPUs"        // one thread was both ends: there are fewer CPUs than ends and what is between them
	MarkGovernor       = "governor"        // the CPUs' frequency governor is not "performance"
	MarkBusy           = "busy"            // over 20 % of the machine was in use just before the trial
	MarkStolen         = "stolen"          // the hypervisor took over 2 % of the CPU time
	MarkEmulated       = "emulated"        // a virtual machine without hardware virtualisation
	MarkLab            = "lab"             // measured inside a virtual machine that stands for the host (dray lab)
	MarkSimulatedHosts = "simulated hosts" // the link's hosts were network namespaces of one machine, with one clock
	MarkLoadMissed     = "load missed"     // achieved load, or sent rate, over 5 % off what was asked
	MarkShared         = "shared"          // the functions' own commands were running, and used the link as they pleased
	MarkStalled        = "stalled"         // a lost message ended the ping-pong early; see Latency.Stalled
	MarkLate           = "late sender"     // the generator sent late: see OneWay.Lateness
	MarkParallel       = "parallel"        // another dray, with another state directory, was measuring too
)

// Mark adds those marks that the trial does not have.
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
	QProbe      Quantity = "probe"       // the same of small packets at a low rate, on an otherwise idle link
	QLatency    Quantity = "latency"     // round-trip samples of a ping-pong
	QDelivery   Quantity = "delivery"    // UDP at an offered rate: loss, order, jitter
	QPacketRate Quantity = "packet_rate" // 64-byte frames (84 over IPv6) at an offered rate
	QRequests   Quantity = "requests"    // 1-byte request/response, transactions/s
	QPathMTU    Quantity = "path_mtu"    // largest packet that passes unfragmented
)

// Instrument is the program that measured.
type Instrument struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Client  []string `json:"client"` // argv
	Server  []string `json:"server"` // argv
	// Placement says where it ran: "host program in the function's network namespace and cgroup".
	Placement string `json:"placement"`
}

// Load is traffic offered to the link while something else was measured, in
// the direction of the trial. Rates count UDP payload, not headers.
type Load struct {
	Instrument Instrument `json:"instrument"`
	Offered    uint64     `json:"offered"` // bit/s
	// Achieved is what the link delivered, bit/s, read at the receiver: what
	// the receiving program took, and what it was too slow to take.
	Achieved      uint64 `json:"achieved"`
	Sent          uint64 `json:"sent"`           // datagrams, over the whole life of the load
	Lost          uint64 `json:"lost"`           // datagrams, with ReceiverDrops
	ReceiverDrops uint64 `json:"receiver_drops"` // see Delivery
}

// Throughput is what one TCP stream carried, or what one generator that sends
// datagrams as fast as it can brought to a program. A Delivery accompanies the
// latter, with sizes and losses.
type Throughput struct {
	Traffic       string   `json:"traffic"`         // "udp" or "tcp"
	BitsPerSecond uint64   `json:"bits_per_second"` // payload received, over the measured interval
	Intervals     []uint64 `json:"intervals"`       // bit/s of each part of the interval, at the sender
	Retransmits   int      `json:"retransmits"`
	// Held counts how often the port took nothing and the sender had to wait (udp).
	Held uint64 `json:"held,omitempty"`
}

// Latency is a distribution of round-trip times of UDP messages in a closed
// loop: the next message is sent at its scheduled time, but never before the
// answer to the last one.
type Latency struct {
	// Histogram holds round-trip times in nanoseconds as HDR counts. Each is
	// taken from the moment the request was due, not from the moment it was
	// sent, where an outstanding answer held it up (so nothing is omitted in
	// co-ordination with a slow link); time that the client itself lost is not
	// counted as the link's.
	Histogram Histogram `json:"histogram"`
	// Halved says that the instrument's own figures in Raw are halves of round
	// trips; the histogram here never is halved.
	Halved bool `json:"instrument_halves"`
	// Sent counts the requests whose answers are in Histogram, and Lost. Those
	// of the instrument's own warm-up and of its last 50 ms are in neither.
	Sent uint64 `json:"sent"`
	// Lost counts requests without an answer. Each is an observation beyond
	// every bound; the instrument waits for it to the end of the trial, so it
	// is 0 or 1, and later samples are missing, not good.
	Lost         uint64        `json:"lost"`
	Duplicated   uint64        `json:"duplicated"`
	Reordered    uint64        `json:"reordered"`
	LateSends    uint64        `json:"late_sends"`    // the client itself was late by over a tenth of the interval
	Stalled      time.Duration `json:"stalled"`       // from the lost request to the end, ns; 0 if none was lost
	MessageBytes int           `json:"message_bytes"` // UDP payload
	Rate         uint64        `json:"rate"`          // messages/s asked for
	MinRTT       time.Duration `json:"min_rtt"`       // ns
}

// OneWay is what the stamps in a stream's packets tell. Sender and receiver
// read one clock (CLOCK_MONOTONIC of one host), so that nothing is halved and
// nothing is estimated.
type OneWay struct {
	// Latency holds the time from when a packet was handed to the port to when
	// the receiving program had it, for each packet received once.
	Latency Histogram `json:"latency"`
	// Intended holds the time from when the packet was due to be sent instead:
	// Latency and Lateness together.
	Intended Histogram `json:"intended"`
	// Lateness is of the generator: from when a packet was due to when it was
	// handed to the port. It is the machine's or the port's back-pressure, and
	// kept apart so that a late generator is not taken for a slow link.
	Lateness Histogram `json:"lateness"`
	// IPDV holds |D(i)−D(i−1)| of consecutive packets (RFC 3393).
	IPDV Histogram     `json:"ipdv"`
	Min  time.Duration `json:"min"` // exactly, of Latency, ns
	Max  time.Duration `json:"max"` // exactly, of Latency, ns
	// Unsent counts packets that were due and never sent, since the generator
	// had fallen too far behind: they are no samples, and count against a bound.
	Unsent uint64 `json:"unsent"`
	// Held counts how often the port took nothing and the sender had to wait.
	// If it is not 0, Lateness is in part the port's doing, and Intended the
	// careful figure.
	Held uint64 `json:"held"`
}

// Histogram is a histogram's non-zero counts, exactly. Its buckets are those of
// an HDR histogram (Lowest, Highest, Digits), or, if Bits is set, log-linear:
// values below 2^Bits have one bucket each, and every power of two from there
// on has 2^Bits of equal width.
type Histogram struct {
	Lowest  int64         `json:"lowest,omitempty"`  // HDR: lowest discernible value, ns
	Highest int64         `json:"highest,omitempty"` // HDR: highest trackable value, ns
	Digits  int           `json:"digits,omitempty"`  // HDR: significant decimal digits
	Bits    int           `json:"bits,omitempty"`    // log-linear
	Counts  []BucketCount `json:"counts"`            // ascending by Value
}

// BucketCount counts the samples of the bucket whose highest value is Value.
type BucketCount struct {
	Value int64 `json:"v"` // ns
	Count int64 `json:"n"`
}

// Delivery is what became of UDP datagrams, read at the receiver. Rates count
// UDP payload, not headers.
type Delivery struct {
	OfferedBits   uint64 `json:"offered_bits_per_second"` // asked for
	SentBits      uint64 `json:"sent_bits_per_second"`    // what the sender managed
	ReceivedBits  uint64 `json:"received_bits_per_second"`
	DatagramBytes int    `json:"datagram_bytes"` // UDP payload
	FrameBytes    int    `json:"frame_bytes"`    // on an Ethernet wire, with FCS
	// Sent = Received + Lost. Datagrams lost at the end of the stream, which a
	// receiver alone cannot see, are known from the sender and counted.
	Sent      uint64 `json:"sent"`
	Received  uint64 `json:"received"`
	Lost      uint64 `json:"lost"`
	Reordered uint64 `json:"reordered"`
	// Duplicated counts further copies of packets in Received.
	Duplicated uint64 `json:"duplicated"`
	// Foreign counts packets that reached the receiver and are none of the stream's.
	Foreign uint64 `json:"foreign"`
	// ReceiverDrops counts those of Lost that the link delivered, but that the
	// measuring program on the receiver's side was too slow to take out of its
	// socket's buffer: the link's own loss is Lost − ReceiverDrops.
	ReceiverDrops uint64 `json:"receiver_drops"`
	// Jitter is the RFC 3550 estimator at the end of the trial, ns.
	Jitter      time.Duration `json:"jitter"`
	OfferedRate uint64        `json:"offered_packets_per_second"`
	SentRate    uint64        `json:"sent_packets_per_second"`
	PacketRate  uint64        `json:"packets_per_second"` // received
}

// PathMTU is the largest packet that passed, and whether the wanted one did.
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

// Environment is the machine as it was during a trial.
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
	OtherRuns  int               `json:"other_runs,omitempty"` // other processes of dray that were measuring
	Pinning    map[string][]int  `json:"pinning"`              // function → CPUs; absent: any
	Offloads   map[string]string `json:"offloads"`             // "function.port" → "tso on, gro on, tx-checksum off"
	Engines    map[string]string `json:"engines"`              // program → version
	Qdiscs     map[string]string `json:"qdiscs"`               // "function.port", or "link: function.port at the switch" → as read back
	Dray       string            `json:"dray"`                 // version of this program
}
