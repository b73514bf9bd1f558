// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

var hostsFields = []parse.Field[Hosts]{
	{Name: "names", Doc: "The hosts, 2 to 16, no two with the same name. Each function names its host.",
		Form: schema.Set(schema.Ref("name"), 2, MaxHosts), Decode: decodeHostNames},
	{Name: "machines", Doc: "The hosts with their resources, 2 to 64, in place of names. The planner places each function that names no host.",
		Form: schema.List(schema.Ref("machine"), 2, MaxMachines), Decode: decodeMachines},
	{Name: "lines", Doc: "The lines between hosts with machines, each of its own rate and delay. Packets take the route with the least delay, also over hosts in between. With more than 16 hosts the chain can only be planned. Default: the underlay joins all hosts.",
		Form: schema.List(schema.Ref("line"), 1, 0), Decode: decodeLines},
	{
		Name: "underlay",
		Doc:  "The network between the hosts.",
		Form: schema.Ref("underlay"),
		Decode: func(d *parse.Decoder, n *yaml.Node, h *Hosts) {
			h.Underlay.FieldPos = d.Positions(parse.Object(d, n, "an underlay", underlayFields, &h.Underlay))
		},
	},
}

var underlayFields = []parse.Field[Underlay]{
	parse.ValueField("rate", "The rate of each host's line in each direction, in Ethernet frames without checksum, preamble and gap. Default: no limit beyond the machine's own.",
		schema.Ref("bitrate"), DecodeShapedRate, func(u *Underlay) *units.Bitrate { return &u.Rate }),
	parse.ReadField("delay", "The one-way delay from one host to another, in addition to the machine's own: whole microseconds, at most 1s. It needs the queueing discipline netem.",
		schema.Ref("duration"), DecodeDelay, func(u *Underlay) *units.Duration { return &u.Delay }),
	parse.IntegerField("mtu", "The longest packet of the underlay in bytes. A tunnel's headers use 50 of them.",
		minMTU+VXLANOverhead, maxMTU, func(u *Underlay) *int { return &u.MTU }).Default(1600),
}

func decodeHosts(d *parse.Decoder, n *yaml.Node, c *Chain) {
	c.Hosts = &Hosts{Underlay: Underlay{MTU: defaultUnderlayMTU}, Pos: d.Position(n)}
	if values := parse.Object(d, n, "hosts", hostsFields, c.Hosts); values != nil {
		c.Hosts.FieldPos = d.Positions(values)
	}
}

func decodeHostNames(d *parse.Decoder, n *yaml.Node, h *Hosts) {
	seen := parse.NewUnique("hosts")
	d.List(n, "names", func(item *yaml.Node) {
		name := d.Name(item, "a host's name")
		seen.Add(d, name, item)
		h.Names = append(h.Names, name)
	})
	if parse.Deref(n).Kind == yaml.SequenceNode && (len(h.Names) < 2 || len(h.Names) > MaxHosts) {
		d.Fail(parse.Deref(n), fmt.Sprintf("name 2 to %d, or leave hosts out", MaxHosts), "a chain cannot have %d simulated hosts", len(h.Names))
	}
}

// DecodeDelay reads a time in tc(8)'s resolution.
func DecodeDelay(d *parse.Decoder, n *yaml.Node) units.Duration {
	v, ok := parse.Positive(d, n, "delay", units.ParseDuration)
	switch {
	case ok && v%1000 != 0:
		d.Fail(n, "write whole microseconds", "delay cannot be %s", v)
	case v > longestDelay:
		d.Fail(n, "write at most "+longestDelay.String(), "delay cannot be %s", v)
	}
	return v
}

// longestDelay of an underlay exceeds once around the Earth in fibre.
const longestDelay units.Duration = 1e9

// checkHosts requires a host for each function if the chain has hosts without resources,
// and no host if it has none.
func (k *checker) checkHosts(c *Chain) {
	k.checkMachines(c.Hosts)
	for i := range c.Functions {
		f := &c.Functions[i]
		at, stated := f.FieldPos["host"]
		switch {
		case c.Hosts == nil && stated:
			k.FailAt(at, fmt.Sprintf(`remove it, or add "hosts: {names: [%s, …]}" to the chain`, f.Host), "the chain has no simulated hosts")
		case c.Hosts == nil || len(c.Hosts.Names) == 0, !stated && c.Hosts.Machines != nil:
		case !stated:
			k.FailAt(f.Pos, fmt.Sprintf(`add one, such as "host: %s"`, c.Hosts.Names[0]), "the function %s is on none of the chain's hosts", parse.Quote(f.Name))
		case f.Host != "" && !slices.Contains(c.Hosts.Names, f.Host):
			k.FailAt(at, knownHost(f.Host, c.Hosts.Names), "there is no host %s", parse.Quote(f.Host))
		}
	}
}
