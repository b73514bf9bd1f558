// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"slices"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// Path is a route of packets through functions of a chain, and what it must do from end to
// end.
type Path struct {
	Name string `json:"name"`
	From End    `json:"from"` // the port at which packets leave the first function
	To   End    `json:"to"`   // the port at which they arrive at the last
	// Steps are the links that the packets cross, in order.
	Steps      []Step     `json:"steps"`
	Directions Directions `json:"directions"`
	// Load is the one-way traffic while latency and loss are measured. HasLoad false: 10 %
	// of Requires.MinBitrate.
	Load    units.Bitrate `json:"load"`
	HasLoad bool          `json:"-"`
	// GTPU is set if packets are in GTP-U tunnels at one of the ends.
	GTPU     *GTPU    `json:"gtpu,omitempty"`
	Requires Requires `json:"requires"`

	Pos      parse.Position            `json:"-"`
	FieldPos map[string]parse.Position `json:"-"` // by field name, of the fields in the file
}

// Step is one link of a path.
type Step struct {
	Link string `json:"link"`
	Out  End    `json:"out"` // the port at which packets enter the link
	In   End    `json:"in"`  // the port at which they leave it
}

// Directions are those in which a path is judged.
type Directions string

const (
	DirectionsBoth    Directions = "both"    // the default: as a link, also from To to From
	DirectionsForward Directions = "forward" // from From to To
)

// Through are the functions between the two ends, in order.
func (p *Path) Through() []string {
	var names []string
	for _, s := range p.Steps[:max(0, len(p.Steps)-1)] {
		names = append(names, s.In.Function)
	}
	return names
}

// Takes reports whether the packets of the path cross the link.
func (p *Path) Takes(link string) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Link == link })
}

// Path returns the chain's path with that name, or nil.
func (c *Chain) Path(name string) *Path {
	for i := range c.Paths {
		if c.Paths[i].Name == name {
			return &c.Paths[i]
		}
	}
	return nil
}
