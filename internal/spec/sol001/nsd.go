// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"cmp"
	"strings"

	"github.com/drayage/dray/internal/spec/parse"
	"go.yaml.in/yaml/v3"
)

// network reads the topology of an NSD: VNFs, virtual links and service access points.
func (d *draft) network() {
	s := d.topology.object("substitution_mappings")
	s.skip("node_type", "capabilities")
	d.title = s.object("properties").text("name")
	for _, key := range d.nodes.keys {
		n := d.nodes.values[key.Value]
		switch d.kind(typeOf(n)) {
		case typeNsVL:
			d.virtualLink(key)
		case typeNS:
			d.service(key)
		case typePNF:
			d.nodes.skip(key.Value)
			d.note(key, "PNF "+plainKey(key.Value), "give the link an uplink, the host interface that leads to it", "a physical function has no counterpart in a chain file")
		}
	}
	for _, key := range d.nodes.keys {
		n := d.nodes.values[key.Value]
		switch kind := d.kind(typeOf(n)); {
		case kind == typeVNF:
			d.constituent(key)
		case kind == typeSap:
			d.external(key)
		case kind == "" && d.linked(n):
			d.note(key, "VNF "+plainKey(key.Value), "put the VNFD with its node type beside the NSD",
				"the type %s is in none of the files; it is taken for a VNF, because it needs virtual links", parse.Quote(typeOf(n)))
			d.constituent(key)
		case kind == "" || kind == typeContainer || kind == typeVduCp || kind == typeVnfVL || kind == typeVnfExtCp:
			d.skipUnknown(key)
		}
	}
}

// service reads the node of the NS itself. A nested NS has no counterpart.
func (d *draft) service(key *yaml.Node) {
	o := d.node(key, "NS")
	if len(o.requirements()) > 0 {
		d.note(key, o.in, "convert its own NSD", "a nested network service has no counterpart in a chain file")
		o.skip("properties")
		return
	}
	d.title = cmp.Or(o.object("properties").text("name"), d.title)
}

// linked reports whether a node requires a virtual link.
func (d *draft) linked(n *yaml.Node) bool {
	list := fieldOf(parse.Deref(n), "requirements")
	if list == nil {
		return false
	}
	for _, item := range parse.Deref(list).Content {
		item = parse.Deref(item)
		for i := 1; i < len(item.Content); i += 2 {
			if d.links[d.targetOf(item.Content[i])] != nil {
				return true
			}
		}
	}
	return false
}

// targetOf is target without notes.
func (d *draft) targetOf(n *yaml.Node) string {
	n = parse.Deref(n)
	if n.Kind == yaml.MappingNode {
		return scalarOf(n, "node")
	}
	return n.Value
}

// constituent reads a VNF of the NS: a function. Each of its requirements that a virtual
// link meets is a port. What is inside the VNF is in its own descriptor.
func (d *draft) constituent(key *yaml.Node) {
	o := d.node(key, "VNF")
	f := d.addFunction(key, o)
	for _, r := range o.requirements() {
		if l := d.joins(o, r); l != nil {
			f.add(&port{node: strings.TrimPrefix(r.name, "virtual_link_"), key: r.key, in: o.in, link: l})
		} else if r.target == "" {
			o.unmet(r)
		}
	}
	p := o.object("properties")
	f.comment = about(p.text("product_info_name"), key.Value)
	profile := p.object("vnf_profile")
	f.count = max(1, d.least(profile, "min_number_of_instances"))
}
