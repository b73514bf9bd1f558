// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"cmp"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

// draft is a chain as far as it is read from a descriptor.
type draft struct {
	*loader
	*template
	title         string // of the VNF or NS
	functionNames *names
	linkNames     *names
	functions     map[string]*function // by node template
	links         map[string]*link     // by node template
	ports         map[string]*port     // of VDUs, by node template
	order         []*function
	linkOrder     []*link
}

// function is a VDU of a VNFD, or a VNF of an NSD.
type function struct {
	node     string
	key      *yaml.Node
	in       string
	comment  string
	count    int  // instances
	levelled bool // an instantiation level has set count
	names    []string
	cpus     int64
	memory   units.Bytes
	huge     []chain.HugePages
	ports    []*port
}

// port is a connection point: of a VDU, or an external one, which is of no function.
type port struct {
	node  string
	key   *yaml.Node
	in    string
	name  string
	order int64
	of    *function
	link  *link        // nil: none in the descriptor
	fixed []*yaml.Node // addresses in the descriptor
	ip    netip.Prefix
}

// add gives a function a port, and its link an end.
func (f *function) add(p *port) {
	p.of = f
	f.ports = append(f.ports, p)
	if p.link != nil {
		p.link.members = append(p.link.members, p)
	}
}

// typeOf is the type of a node template or policy.
func typeOf(n *yaml.Node) string { return scalarOf(n, "type") }

// scalarOf is the text below fields of a mapping, or "".
func scalarOf(n *yaml.Node, fields ...string) string {
	for _, name := range fields {
		if n == nil {
			return ""
		}
		n = fieldOf(parse.Deref(n), name)
	}
	if n == nil || parse.Deref(n).Kind != yaml.ScalarNode {
		return ""
	}
	return parse.Deref(n).Value
}

func fieldOf(n *yaml.Node, name string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// node opens a node template. Its type has been looked at.
func (d *draft) node(key *yaml.Node, what string) *object {
	d.nodes.skip(key.Value)
	o := d.open(d.nodes.values[key.Value], what+" "+plainKey(key.Value))
	o.skip("type", "description")
	return o
}

// requirement is one that a node template has of another.
type requirement struct {
	name   string
	target string
	key    *yaml.Node
}

// requirements are those of a node template, in order.
func (o *object) requirements() []requirement {
	var all []requirement
	for _, item := range o.list("requirements") {
		r := o.open(item, o.in)
		for _, key := range r.keys {
			r.skip(key.Value)
			all = append(all, requirement{key.Value, o.target(r.values[key.Value]), key})
		}
	}
	return all
}

// target is the node template that a requirement names: NAME, {node: NAME}, or [NAME,
// capability].
func (o *object) target(n *yaml.Node) string {
	n = o.resolve(n, o.in)
	switch {
	case n == nil:
		return ""
	case n.Kind == yaml.MappingNode:
		return scalarOf(n, "node")
	case n.Kind == yaml.SequenceNode && len(n.Content) > 0:
		return parse.Deref(n.Content[0]).Value
	}
	return n.Value
}

// unmet notes a requirement that says nothing which a chain file could.
func (o *object) unmet(r requirement) {
	o.note(r.key, o.in, "", "the requirement %s has no counterpart in a chain file", plainKey(r.name))
}

// joins is the link that a requirement names, or nil with a note.
func (d *draft) joins(o *object, r requirement) *link {
	l := d.links[r.target]
	if l == nil && r.target != "" {
		o.note(r.key, o.in, "", "the requirement %s names %s, which is no virtual link of the descriptor", plainKey(r.name), parse.Quote(r.target))
	}
	return l
}

// addFunction begins a function for a node template.
func (d *draft) addFunction(key *yaml.Node, o *object) *function {
	f := &function{node: key.Value, key: key, in: o.in}
	d.functions[key.Value] = f
	d.order = append(d.order, f)
	return f
}

// skipUnknown notes a node template that a chain has no word for.
func (d *draft) skipUnknown(key *yaml.Node) {
	d.nodes.skip(key.Value)
	name := typeOf(d.nodes.values[key.Value])
	if name == "" {
		d.note(key, "", "", "%s has no type, so it is left out", plainKey(key.Value))
		return
	}
	d.note(key, "", "", "%s, of the type %s, has no counterpart in a chain file", plainKey(key.Value), plainKey(name))
}

// name is the chain's: the product's or service's, else the file's.
func (d *draft) name() string {
	file := filepath.Base(d.src.given)
	return cmp.Or(plainName(d.title, longName), plainName(strings.TrimSuffix(file, filepath.Ext(file)), longName), "imported")
}

// sortPorts puts the ports of each function in the order of its interfaces.
func (d *draft) sortPorts() {
	for _, f := range d.order {
		slices.SortStableFunc(f.ports, func(a, b *port) int { return cmp.Compare(a.order, b.order) })
	}
}
