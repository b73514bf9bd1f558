// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// Kind is the document kind of a bench's matrix.
const Kind = "Bench"

// Matrix is one parsed and validated matrix: every combination of its lists' items is a
// configuration, and each is measured at every load.
type Matrix struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Name       string              `json:"name"`
	Transports []string            `json:"transports,omitempty"` // nil: all that this build knows
	Faces      []chain.Face        `json:"faces,omitempty"`      // nil: interfaces if a transport has them, else all its faces
	Runtimes   []chain.RuntimeName `json:"runtimes"`
	Image      string              `json:"image,omitempty"`     // of docker functions
	HugePages  []chain.HugePages   `json:"hugepages,omitempty"` // of each function with dpdk ports; nil: plain pages
	Sizes      []FrameSize         `json:"sizes"`
	Loads      []Load              `json:"loads"`
	Search     Search              `json:"search"`
	VNFs       []VNF               `json:"vnfs"`
	// Repetitions is the number of rounds; each measures every configuration once.
	Repetitions int            `json:"repetitions"`
	Trial       units.Duration `json:"trial"` // how long each trial offers its load
	// AtMost ends the run early: a round after the first starts only if it can end in
	// time. 0: all rounds.
	AtMost   units.Duration `json:"at_most,omitempty"`
	Seed     uint64         `json:"seed,omitempty"` // of the random order; 0: a new seed for each run
	Baseline string         `json:"baseline,omitempty"`
	// Privileged includes transports whose functions need privileges.
	Privileged bool `json:"privileged,omitempty"`
	// Batch is the most packets in one system call at ports with face netdev; 0: as many
	// as are due, up to the generator's own limit.
	Batch int `json:"batch,omitempty"`
	// NoHzFull stops the tick of the functions' VMs, which only experiments have.
	NoHzFull bool `json:"nohz_full,omitempty"`
	// Forwarding applies to every link; a transport without the choice is excluded.
	Forwarding chain.Forwarding `json:"forwarding,omitempty"`

	File string `json:"-"` // for errors
}

// FrameSize is the length of an Ethernet frame on the wire, with its FCS, in bytes; 0
// is simple IMIX: 64, 594 and 1518 bytes at 7:4:1.
type FrameSize int

// IMIX is the mix of the three sizes.
const IMIX FrameSize = 0

// mixedMean is the mean frame length of the simple IMIX, with FCS, in bytes: (7·64 +
// 4·594 + 1518) / 12, as the generator sends it.
const mixedMean = 4342.0 / 12

// Bytes is the mean frame length on the wire, with FCS.
func (s FrameSize) Bytes() float64 {
	if s == IMIX {
		return mixedMean
	}
	return float64(s)
}

// Largest is the longest frame, with FCS, in bytes.
func (s FrameSize) Largest() int {
	if s == IMIX {
		return 1518
	}
	return int(s)
}

func (s FrameSize) String() string {
	if s == IMIX {
		return "imix"
	}
	return strconv.Itoa(int(s))
}

// MarshalText writes the size as in a matrix.
func (s FrameSize) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *FrameSize) UnmarshalText(text []byte) (err error) {
	*s, err = ParseFrameSize(string(text))
	return err
}

func ParseFrameSize(text string) (FrameSize, error) {
	if text == "imix" {
		return IMIX, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text || n < chain.MinFrame || n > chain.MaxFrame {
		return 0, &parse.Error{Text: "a frame's size cannot be " + parse.Quote(text),
			Fix: fmt.Sprintf("write %d to %d (bytes with FCS), or imix", chain.MinFrame, chain.MaxFrame)}
	}
	return FrameSize(n), nil
}

// Load is the load of a trial: exactly one of Search, OfPDR, PacketRate and Bitrate is
// set.
type Load struct {
	Search     string           // LoadMax, LoadNDR, LoadPDR or LoadRFC2544
	OfPDR      bool             // Percent of the PDR found in the same round
	Percent    int              // 0: an idle link, with probe packets alone
	PacketRate units.PacketRate // per second
	Bitrate    units.Bitrate    // of frames without FCS
}

// LoadPattern is the form of a load.
const LoadPattern = `^(max|ndr|pdr|rfc2544|(0|[1-9][0-9]?)%pdr|[0-9]+(\.[0-9]+)?[kMGT]?(pps|bps))$`

// The loads that are not stated rates.
const (
	LoadMax = "max" // as fast as the port takes packets
	LoadNDR = "ndr" // the highest rate without loss, searched for
	LoadPDR = "pdr" // the highest rate with little loss: 0.5 % by default
	// LoadRFC2544 is the throughput of RFC 2544: without loss, by binary search.
	LoadRFC2544 = "rfc2544"
)

// Stated reports whether the load is a rate, not a maximum or a share of one.
func (l Load) Stated() bool { return l.Search == "" && !l.OfPDR }

// Searched reports whether trials must find the load.
func (l Load) Searched() bool { return l.Search != "" && l.Search != LoadMax }

func (l Load) String() string {
	switch {
	case l.Search != "":
		return l.Search
	case l.OfPDR:
		return strconv.Itoa(l.Percent) + sharesPDR
	case l.PacketRate > 0:
		return l.PacketRate.String()
	}
	return l.Bitrate.String()
}

// MarshalText writes the load as in a matrix.
func (l Load) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (l *Load) UnmarshalText(text []byte) (err error) {
	*l, err = ParseLoad(string(text))
	return err
}

func ParseLoad(text string) (Load, error) {
	switch {
	case text == LoadMax || text == LoadNDR || text == LoadPDR || text == LoadRFC2544:
		return Load{Search: text}, nil
	case strings.HasSuffix(text, sharesPDR):
		return parseShare(text)
	case strings.HasSuffix(text, "pps"):
		r, err := units.ParsePacketRate(text)
		return Load{PacketRate: r}, notZero(text, uint64(r), err)
	case strings.HasSuffix(text, "bps"):
		b, err := units.ParseBitrate(text)
		return Load{Bitrate: b}, notZero(text, uint64(b), err)
	}
	return Load{}, &parse.Error{Text: "a load cannot be " + parse.Quote(text), Fix: `write max, ndr, pdr, rfc2544, a share such as "10%pdr", or a rate such as "100kpps" or "1Gbps"`}
}

func notZero(text string, value uint64, err error) error {
	if err == nil && value == 0 {
		return &parse.Error{Text: "a load of " + parse.Quote(text) + " measures nothing", Fix: "write a rate above 0, or max"}
	}
	return err
}

// VNF is what runs between the generator's ports.
type VNF string

// VNFDirect is no function: one link joins sender and receiver. The others are modes of
// dray-vnf with a link on either side, or "lb-N", a load balancer.
const VNFDirect VNF = "direct"

// Workers is a load balancer's worker count; 0: no load balancer.
func (v VNF) Workers() int {
	count, balances := strings.CutPrefix(string(v), "lb-")
	n, err := strconv.Atoi(count)
	if !balances || err != nil {
		return 0
	}
	return n
}
