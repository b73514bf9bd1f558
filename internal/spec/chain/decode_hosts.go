// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

var hostsFields = []field[Hosts]{
	{"names", true, decodeHostNames},
	{"underlay", false, func(d *decoder, n *yaml.Node, h *Hosts) {
		h.Underlay.FieldPos = d.positions(object(d, n, "an underlay", underlayFields, &h.Underlay))
	}},
}

var underlayFields = []field[Underlay]{
	{"rate", false, func(d *decoder, n *yaml.Node, u *Underlay) { u.Rate = d.shapedRate(n, "rate") }},
	{"delay", false, func(d *decoder, n *yaml.Node, u *Underlay) { u.Delay = d.underlayDelay(n) }},
	{"mtu", false, func(d *decoder, n *yaml.Node, u *Underlay) {
		u.MTU, _ = d.integer(n, "mtu", minMTU+VXLANOverhead, maxMTU)
	}},
}

func decodeHosts(d *decoder, n *yaml.Node, c *Chain) {
	c.Hosts = &Hosts{Underlay: Underlay{MTU: defaultUnderlayMTU}, Pos: d.position(n)}
	c.Hosts.FieldPos = d.positions(object(d, n, "hosts", hostsFields, c.Hosts))
}

func decodeHostNames(d *decoder, n *yaml.Node, h *Hosts) {
	seen := newUnique("hosts")
	d.list(n, "names", func(item *yaml.Node) {
		name := d.name(item, "a host's name")
		seen.add(d, name, item)
		h.Names = append(h.Names, name)
	})
	if deref(n).Kind == yaml.SequenceNode && (len(h.Names) < 2 || len(h.Names) > MaxHosts) {
		d.fail(deref(n), fmt.Sprintf("name 2 to %d, or leave hosts out", MaxHosts), "a chain cannot have %d simulated hosts", len(h.Names))
	}
}

// underlayDelay is a time in the unit of tc(8).
func (d *decoder) underlayDelay(n *yaml.Node) Duration {
	v, ok := positive(d, n, "delay", ParseDuration)
	switch {
	case ok && v%1000 != 0:
		d.fail(n, "write whole microseconds", "the delay of an underlay cannot be %s", v)
	case v > longestDelay:
		d.fail(n, "write at most "+longestDelay.String(), "the delay of an underlay cannot be %s", v)
	}
	return v
}

// longestDelay of an underlay is once around the Earth in fibre, and more.
const longestDelay Duration = 1e9

// checkHosts sees that each function is on a host where there are hosts, and on
// none where there are none.
func (k *checker) checkHosts(c *Chain) {
	for i := range c.Functions {
		f := &c.Functions[i]
		at, stated := f.FieldPos["host"]
		switch {
		case c.Hosts == nil && stated:
			k.failAt(at, fmt.Sprintf(`remove it, or add "hosts: {names: [%s, …]}" to the chain`, f.Host), "the chain has no simulated hosts")
		case c.Hosts == nil || len(c.Hosts.Names) == 0:
		case !stated:
			k.failAt(f.Pos, fmt.Sprintf(`add one, such as "host: %s"`, c.Hosts.Names[0]), "the function %s is on none of the chain's hosts", quote(f.Name))
		case f.Host != "" && !contains(c.Hosts.Names, f.Host):
			fix := "write " + either(c.Hosts.Names)
			if near := similar(f.Host, c.Hosts.Names); near != "" {
				fix = fmt.Sprintf("did you mean %q?", near)
			}
			k.failAt(at, fix, "there is no host %s", quote(f.Host))
		}
	}
}

// checkCellHosts sees that a cell of an experiment has hosts where its transport
// joins these; takes says whether its tool measures between hosts.
func (d *decoder) checkCellHosts(c *Cell, values map[string]*yaml.Node, takes bool) {
	tunnel := contains(tunnels, c.Transport)
	switch {
	case tunnel && !takes:
		d.fail(values["transport"], "use another tool, or another transport", "the tool %s measures on one host, and %s joins two", c.Tool, c.Transport)
	case tunnel && values["hosts"] == nil:
		d.fail(values["transport"], "add hosts: 2, or use another transport", "the transport %s joins hosts", c.Transport)
	case !tunnel && takes && values["hosts"] != nil:
		d.fail(values["hosts"], "remove it, or use the transport "+either(tunnels), "only a tunnel joins hosts")
	}
	for _, name := range []string{"underlay", "delay"} {
		if values[name] != nil && values["hosts"] == nil {
			d.fail(values[name], "add hosts: 2, or remove it", "an underlay is between hosts")
		}
	}
}
