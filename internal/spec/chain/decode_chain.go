// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

var chainFields = []field[Chain]{
	{"apiVersion", true, func(d *decoder, n *yaml.Node, c *Chain) { c.APIVersion = APIVersion }},
	{"kind", true, func(d *decoder, n *yaml.Node, c *Chain) { c.Kind = Kind }},
	{"name", true, func(d *decoder, n *yaml.Node, c *Chain) { c.Name = d.name(n, "a chain's name") }},
	{"policy", false, func(d *decoder, n *yaml.Node, c *Chain) { object(d, n, "a policy", policyFields, &c.Policy) }},
	{"hosts", false, decodeHosts},
	{"functions", true, decodeFunctions},
	{"links", false, decodeLinks},
}

var policyFields = []field[Policy]{
	{"on_infeasible", false, func(d *decoder, n *yaml.Node, p *Policy) {
		if v, ok := choice(d, n, "on_infeasible", policies); ok {
			p.OnInfeasible = v
		}
	}},
	{"privileged", false, func(d *decoder, n *yaml.Node, p *Policy) {
		if v, ok := d.boolean(n, "privileged"); ok {
			p.Privileged = v
		}
	}},
}

// versionField is what a field must say that says what the document is; empty for
// any other.
func (d *decoder) versionField(name string) string {
	return map[string]string{"apiVersion": APIVersion, "kind": d.kind}[name]
}

// checkVersion complains about a document that says to be something else.
func (d *decoder) checkVersion(root *yaml.Node) {
	root = deref(root)
	if root.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], deref(root.Content[i+1])
		want := d.versionField(key.Value)
		if key.Kind != yaml.ScalarNode || want == "" || isNull(value) {
			continue
		}
		fix := fmt.Sprintf("this version of dray reads %q", key.Value+": "+want)
		if s, ok := d.scalar(value, key.Value); ok && s != want {
			d.fail(value, fix, "%s cannot be %s", key.Value, quote(s))
		}
	}
}

func decodeFunctions(d *decoder, n *yaml.Node, c *Chain) {
	names := newUnique("functions")
	d.list(n, "functions", func(item *yaml.Node) {
		d.part("function", item)
		f := Function{Runtime: RuntimeRunc, Restart: RestartNever, Pos: d.position(item)}
		values := object(d, item, "a function", functionFields, &f)
		f.FieldPos = d.positions(values)
		names.add(d, f.Name, values["name"])
		d.checkRuntime(&f, values)
		d.checkEAL(&f, values["command"])
		c.Functions = append(c.Functions, f)
	})
	if n := deref(n); n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		d.fail(n, "describe at least one", "the chain has no functions")
	}
}

func decodeLinks(d *decoder, n *yaml.Node, c *Chain) {
	names := newUnique("links")
	d.list(n, "links", func(item *yaml.Node) {
		d.part("link", item)
		l := Link{Transport: TransportAuto, Isolation: IsolationLink, Traffic: TrafficUDP, Pos: d.position(item)}
		values := object(d, item, "a link", linkFields, &l)
		l.FieldPos = d.positions(values)
		names.add(d, l.Name, values["name"])
		d.checkRates(&l, values)
		d.checkForwarding(&l, values)
		c.Links = append(c.Links, l)
	})
}
