// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

// maxHops is the most functions between the ends of a path.
const maxHops = 30

var pathFields = []parse.Field[Path]{
	parse.NameField("name", "a path's name", "The name of the path in plans, verdicts and reports.",
		func(p *Path) *string { return &p.Name }).As(schema.Ref("name")).Must(),
	parse.ReadField("from", "The port at which packets leave the first function.", schema.Ref("port-end"), decodePathEnd, func(p *Path) *End { return &p.From }).Must(),
	{Name: "through", Doc: "The functions that the packets pass, in order. A link joins each to the next. If several do, write \"function.port\", with the port at which the packets arrive.",
		Form: schema.List(schema.Pattern(`^[^.]+([.][^.]+)?$`), 1, maxHops), Decode: decodeThrough},
	parse.ReadField("to", "The port at which the packets arrive at the last function.", schema.Ref("port-end"), decodePathEnd, func(p *Path) *End { return &p.To }).Must(),
	parse.ChoiceField("directions", "The directions in which the path is judged: `both`, as a link is, or `forward`, only from `from` to `to`.",
		[]Directions{DirectionsBoth, DirectionsForward}, func(p *Path) *Directions { return &p.Directions }).Default("both"),
	{
		Name: "load",
		Doc:  "The traffic in one direction while latency and loss are measured. Default: 10 % of min_bitrate. With 0bps latency is measured on idle links.",
		Form: schema.Ref("bitrate"),
		Decode: func(d *parse.Decoder, n *yaml.Node, p *Path) {
			p.Load, p.HasLoad = parse.Quantity(d, n, "load", units.ParseBitrate)
		},
	},
	{Name: "gtpu", Doc: "GTP-U tunnels in which packets are at one end, until a function takes them out. Default: none.", Form: schema.Ref("gtpu"), Decode: decodeGTPU},
	{Name: "requires", Doc: "What the path must do from end to end.", Form: schema.Ref("path-requires"), Decode: decodePathRequires, Required: true},
}

var pathRequiresFields = []parse.Field[Requires]{
	parse.PositiveField("latency", "The largest one-way latency at the percentile, judged in the worst direction.",
		schema.Ref("duration"), units.ParseDuration, func(r *Requires) *units.Duration { return &r.Latency }),
	parse.QuantityField("percentile", "The percentile at which latency is judged. A percentile needs ten samples beyond it: 99.99 needs at least 100 000 packets.",
		schema.Ref("percentile").Default(99), units.ParsePercentile, func(r *Requires) *units.Percentile { return &r.Percentile }),
	parse.ReadField("packet_loss_ratio", "The largest proportion of packets that may be lost. A ratio r needs at least 3/r packets without loss.",
		schema.Ref("ratio"), decodeLossRatio, func(r *Requires) **units.Ratio { return &r.LossRatio }),
	parse.PositiveField("min_bitrate", "The minimum throughput in each direction that is judged.",
		schema.Ref("bitrate"), units.ParseBitrate, func(r *Requires) *units.Bitrate { return &r.MinBitrate }),
	parse.IntegerField("mtu", "The size of a user's IP packet, in bytes, that must pass without fragmentation: what the path's tunnels add does not count.",
		minMTU, maxMTU, func(r *Requires) *int { return &r.MTU }).As(schema.Ref("mtu")),
}

func decodePaths(d *parse.Decoder, n *yaml.Node, c *Chain) {
	names := parse.NewUnique("paths")
	d.List(n, "paths", func(item *yaml.Node) {
		d.Part("path", item)
		p := Path{Directions: DirectionsBoth, Pos: d.Position(item)}
		values := parse.Object(d, item, "a path", pathFields, &p)
		p.FieldPos = d.Positions(values)
		p.Steps = append(p.Steps, Step{In: p.To})
		names.Add(d, p.Name, values["name"])
		c.Paths = append(c.Paths, p)
	})
}

func decodePathEnd(d *parse.Decoder, n *yaml.Node) End {
	e := End{Pos: d.Position(n)}
	decodePortEnd(d, n, "an end of a path", `write "function.port"`, &e)
	return e
}

func decodeThrough(d *parse.Decoder, n *yaml.Node, p *Path) {
	d.List(n, "through", func(item *yaml.Node) {
		text, ok := d.Text(item, "a function")
		if !ok {
			return
		}
		in := End{Pos: d.Position(item)}
		in.Function, in.Port, _ = strings.Cut(text, ".")
		p.Steps = append(p.Steps, Step{In: in})
	})
	if len(p.Steps) > maxHops {
		d.Fail(parse.Deref(n), fmt.Sprintf("name at most %d", maxHops), "a path cannot pass %d functions", len(p.Steps))
	}
}

func decodePathRequires(d *parse.Decoder, n *yaml.Node, p *Path) {
	r := &p.Requires
	values := parse.Object(d, n, "requires", pathRequiresFields, r)
	r.Pos = d.Positions(values)
	switch {
	case r.Latency > 0 && r.Percentile == 0:
		r.Percentile = defaultPercentile
	case r.Latency == 0 && values["percentile"] != nil && values["latency"] == nil:
		d.Fail(values["percentile"], "add latency, or remove it", "percentile has nothing to apply to")
	}
	if values != nil && len(values) == 0 {
		d.Fail(parse.Deref(n), "state a latency, a packet_loss_ratio, a min_bitrate or an mtu", "the path requires nothing")
	}
}
