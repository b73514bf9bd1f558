// SPDX-License-Identifier: Apache-2.0

package verdict

import "math"

// Unit is the unit of a figure.
type Unit string

const (
	UnitTime       Unit = "ns"
	UnitBitrate    Unit = "bit/s"
	UnitPacketRate Unit = "packets/s"
	UnitRatio      Unit = "1"
	UnitBytes      Unit = "bytes"
)

// Relation says on which side of a figure the truth is, or must be.
type Relation string

const (
	AtLeast Relation = "at least"
	AtMost  Relation = "at most"
	Below   Relation = "below"
)

// Figure is a number with its unit for programs, and a text for terminals.
type Figure struct {
	// Value is nil if there is no number: nothing was measured, the packets never
	// arrived, or the figure is an interval.
	Value    *float64 `json:"value"`
	Unit     Unit     `json:"unit,omitempty"`
	Relation Relation `json:"relation,omitempty"` // for a requirement or a bound
	// Low and High are the ends of an undecided interval.
	Low        *float64 `json:"low,omitempty"`
	High       *float64 `json:"high,omitempty"`
	Percentile float64  `json:"percentile,omitempty"` // for a delay
	Text       string   `json:"text"`
}

// String is the text: "≤ 1.5ms at p99".
func (f Figure) String() string { return f.Text }

func figure(v float64, u Unit, text string) Figure {
	return Figure{Value: finite(v), Unit: u, Text: text}
}

func atLeast(v float64, u Unit, text string) Figure {
	return Figure{Value: finite(v), Unit: u, Relation: AtLeast, Text: "≥ " + text}
}

func atMost(v float64, u Unit, text string) Figure {
	return Figure{Value: finite(v), Unit: u, Relation: AtMost, Text: "≤ " + text}
}

func below(v float64, u Unit, text string) Figure {
	return Figure{Value: finite(v), Unit: u, Relation: Below, Text: "< " + text}
}

func between(low, high float64, u Unit, text string) Figure {
	return Figure{Low: finite(low), High: finite(high), Unit: u, Text: text}
}

// unknown is a figure that has a unit and no number.
func unknown(u Unit, text string) Figure { return Figure{Unit: u, Text: text} }

// none is an unknown figure.
func none() Figure { return Figure{Text: "–"} }

// finite is nil if JSON cannot hold v.
func finite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}
