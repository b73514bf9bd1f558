// SPDX-License-Identifier: Apache-2.0

// Package record holds the raw outcome of trials, with the environment they
// were made in. Statistics and reports are made from records and nothing else.
package record

import "time"

// Schema is the version of the record format.
const Schema = 1

// Trial is one measured interval: one line of a records file.
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
	Load     *Load         `json:"load,omitempty"`
	Warmup   bool          `json:"warmup"` // kept for completeness, never evaluated
	Seed     uint64        `json:"seed"`   // of the random order
	Order    int           `json:"order"`  // position in the run, from 0
	Round    int           `json:"round"`  // repetition of this cell, from 0
	Start    time.Time     `json:"start"`
	Duration time.Duration `json:"duration"` // ns
	Marks    []string      `json:"marks"`    // "oversubscribed", "emulated", "busy", "governor"…
	// Error says why there is no result. A trial with an error is a record too.
	Error      string      `json:"error,omitempty"`
	Throughput *Throughput `json:"throughput,omitempty"`
	Latency    *Latency    `json:"latency,omitempty"`
	Delivery   *Delivery   `json:"delivery,omitempty"`
	Requests   *Requests   `json:"requests,omitempty"`
	PathMTU    *PathMTU    `json:"path_mtu,omitempty"`
	Env        Environment `json:"environment"`
	Raw        string      `json:"raw,omitempty"` // the instrument's own output, verbatim
}

// Quantity is what a trial measures.
type Quantity string

const (
	QThroughput Quantity = "throughput"  // TCP goodput, bit/s
	QLatency    Quantity = "latency"     // round-trip samples
	QDelivery   Quantity = "delivery"    // UDP at an offered rate: loss, order, jitter
	QPacketRate Quantity = "packet_rate" // UDP with 64-byte frames at an offered rate
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

// Load is traffic offered to the link while something else was measured.
type Load struct {
	Instrument Instrument `json:"instrument"`
	Offered    uint64     `json:"offered"`  // bit/s
	Achieved   uint64     `json:"achieved"` // bit/s received
}

// Throughput is what one TCP stream carried.
type Throughput struct {
	BitsPerSecond uint64   `json:"bits_per_second"` // payload received, over the measured interval
	Intervals     []uint64 `json:"intervals"`       // bit/s of each second or part
	Retransmits   int      `json:"retransmits"`
}

// Latency is a distribution of round-trip times.
type Latency struct {
	// Histogram holds round-trip times in nanoseconds as HDR counts.
	Histogram Histogram `json:"histogram"`
	// Halved says that the instrument itself reports half the round trip; the
	// histogram here never is halved.
	Halved bool          `json:"instrument_halves"`
	Sent   uint64        `json:"sent"`
	Lost   uint64        `json:"lost"`    // requests without an answer
	MinRTT time.Duration `json:"min_rtt"` // ns
}

// Histogram is an HDR histogram's non-zero counts, exactly.
type Histogram struct {
	Lowest  int64         `json:"lowest"`  // lowest discernible value, ns
	Highest int64         `json:"highest"` // highest trackable value, ns
	Digits  int           `json:"digits"`  // significant decimal digits
	Counts  []BucketCount `json:"counts"`  // ascending by Value
}

// BucketCount counts the samples whose bucket's highest equivalent value is Value.
type BucketCount struct {
	Value int64 `json:"v"` // ns
	Count int64 `json:"n"`
}

// Delivery is what became of UDP datagrams, read at the receiver.
type Delivery struct {
	OfferedBits   uint64        `json:"offered_bits_per_second"` // asked for
	SentBits      uint64        `json:"sent_bits_per_second"`    // what the sender managed
	ReceivedBits  uint64        `json:"received_bits_per_second"`
	DatagramBytes int           `json:"datagram_bytes"` // UDP payload
	Sent          uint64        `json:"sent"`
	Received      uint64        `json:"received"`
	Lost          uint64        `json:"lost"`
	Reordered     uint64        `json:"reordered"`
	Jitter        time.Duration `json:"jitter"` // RFC 3550 estimator, ns
	PacketRate    uint64        `json:"packets_per_second"`
}

// PathMTU is the largest packet that passed, and whether the wanted one did.
type PathMTU struct {
	Wanted int  `json:"wanted"` // bytes of L3 packet
	Passed bool `json:"passed"`
}

// Requests is the outcome of a closed loop of 1-byte requests and responses.
type Requests struct {
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
	HugePages  map[string]int    `json:"hugepages"`   // "2Mi" → pages
	LoadBefore float64           `json:"load_before"` // 1-minute load average
	BusyDuring float64           `json:"busy_during"` // share of all CPU time not idle, 0–1, by everyone
	Stolen     float64           `json:"stolen"`      // share of CPU time stolen by the hypervisor, 0–1
	Pinning    map[string][]int  `json:"pinning"`     // function → CPUs; absent: any
	Offloads   map[string]string `json:"offloads"`    // "function.port" → "tso on, gro on, tx-checksum off"
	Engines    map[string]string `json:"engines"`     // program → version
	Qdiscs     map[string]string `json:"qdiscs"`      // "function.port" → as read back
	Dray       string            `json:"dray"`        // version of this program
}
