// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"cmp"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

// minMemory is the least memory of a function, and maxCPUs the most of its CPUs.
const (
	minMemory = 4 << 20
	maxCPUs   = 8192
)

// vnf reads the topology of a VNFD: VDUs, their connection points and virtual links.
func (d *draft) vnf() {
	d.title = d.product(d.templates[0])
	containers := map[string]*object{}
	for _, key := range d.nodes.keys {
		name := typeOf(d.nodes.values[key.Value])
		switch kind := d.kind(name); {
		case kind == typeCompute || kind == typeContainers:
			d.vdu(key)
		case kind == typeVnfVL:
			d.virtualLink(key)
		case kind == typeContainer:
			containers[key.Value] = d.node(key, "container")
		case kind == typeVNF || name != "" && name == d.substitutes:
			o := d.node(key, "VNF")
			p := o.object("properties")
			d.title = cmp.Or(p.text("product_name"), d.title, d.products[name])
			p.skip("flavour_id")
		case kind != typeVduCp && kind != typeVnfExtCp:
			d.skipUnknown(key)
		}
	}
	for _, f := range d.order {
		d.deploy(f, containers)
	}
	for _, key := range d.nodes.keys {
		switch d.kind(typeOf(d.nodes.values[key.Value])) {
		case typeVduCp:
			d.vduCp(key)
		case typeVnfExtCp:
			d.external(key)
		}
	}
	d.exposed()
	d.sortPorts()
}

// product is the name of the VNF in the entry of a VNFD with several flavours.
func (d *draft) product(entry *template) string {
	for _, key := range entry.nodes.keys {
		if n := entry.nodes.values[key.Value]; entry != d.template && d.kind(typeOf(n)) == typeVNF {
			entry.nodes.skip(key.Value)
			o := entry.open(n, "VNF "+plainKey(key.Value))
			o.skip("type", "description")
			p := o.object("properties")
			p.skip("flavour_id")
			return cmp.Or(p.text("product_name"), d.products[typeOf(n)])
		}
	}
	return ""
}

// vdu begins the function of a VDU.
func (d *draft) vdu(key *yaml.Node) {
	o := d.node(key, "VDU")
	f := d.addFunction(key, o)
	p := o.object("properties")
	f.comment = about(p.text("description"), key.Value, p.text("name"))
	profile := p.object("vdu_profile")
	f.count = d.least(profile, "min_number_of_instances")
	d.compute(f, o.object("capabilities").object("virtual_compute").object("properties"))
}

// about is a description for a comment, unless it is only a name.
func about(description string, names ...string) string {
	for _, name := range names {
		if strings.EqualFold(description, name) {
			return ""
		}
	}
	return description
}

// least is how many instances a profile has at least. Its maximum is a note unless it
// is the same.
func (d *draft) least(profile *object, field string) int {
	least, ok := profile.integer(field)
	if most := profile.values["max_number_of_instances"]; ok && most != nil && parse.Deref(most).Value == parse.Deref(profile.values[field]).Value {
		profile.skip("max_number_of_instances")
	}
	if !ok {
		return 1
	}
	return int(min(least, chain.MaxInstances+1))
}

// compute reads the CPUs and memory of a virtual machine. Those that it shares with
// others are no CPUs and memory of its own.
func (d *draft) compute(f *function, c *object) {
	cpu := c.object("virtual_cpu")
	if cpu.text("virtual_cpu_oversubscription_policy") != "" {
		cpu.note(cpu.values["virtual_cpu_oversubscription_policy"], f.in, "", "the VDU shares its CPUs, so the function has no cpus: a chain's are its own")
		cpu.skip("num_virtual_cpu")
	} else if n, ok := cpu.integer("num_virtual_cpu"); ok {
		f.cpus = d.within(cpu, "num_virtual_cpu", n, 1, maxCPUs)
	}
	if pinning := cpu.object("virtual_cpu_pinning"); scalarOf(pinning.node, "virtual_cpu_pinning_policy") == "dynamic" {
		pinning.skip("virtual_cpu_pinning_policy")
	}
	mem := c.object("virtual_memory")
	if mem.text("virtual_mem_oversubscription_policy") != "" {
		mem.note(mem.values["virtual_mem_oversubscription_policy"], f.in, "", "the VDU shares its memory, so the function has no limit of memory")
		mem.skip("virtual_mem_size")
	} else if v, ok := mem.quantity("virtual_mem_size", readSize); ok {
		f.memory = units.Bytes(d.within(mem, "virtual_mem_size", v, minMemory, 1<<62))
	}
	if n := mem.value("numa_enabled"); n != nil && n.Value != "false" {
		delete(mem.seen, "numa_enabled")
	}
	d.hugePages(f, mem, "huge_pages_requirements")
}

// within is a value that a chain file can have, else 0 with a note.
func (d *draft) within(o *object, field string, v, low, high int64) int64 {
	if v < low || v > high {
		o.note(o.values[field], o.in, "", "%s cannot be %d in a chain file: it is %d to %d there", field, v, low, high)
		return 0
	}
	return v
}

// hugePages reads the huge pages by their size.
func (d *draft) hugePages(f *function, o *object, field string) {
	for _, item := range o.list(field) {
		h := o.open(item, o.in)
		size, ok1 := h.quantity("hugepage_size", readSize)
		limit, ok2 := h.quantity("requested_size", readSize)
		if !ok1 || !ok2 {
			continue
		}
		if size != 2<<20 && size != 1<<30 || limit < size || limit%size != 0 || f.hasPages(size) {
			h.note(h.node, h.in, "", "a chain file has whole huge pages of 2 MiB and 1 GiB, each size once; these are left out")
			continue
		}
		f.huge = append(f.huge, chain.HugePages{Size: units.Bytes(size), Limit: units.Bytes(limit)})
	}
}

func (f *function) hasPages(size int64) bool {
	for _, h := range f.huge {
		if h.Size == units.Bytes(size) {
			return true
		}
	}
	return false
}

// deploy reads the containers of a deployable unit: their memory adds up.
func (d *draft) deploy(f *function, containers map[string]*object) {
	o := d.node(f.key, "VDU")
	for _, r := range o.requirements() {
		c := containers[r.target]
		if r.name != "container" || c == nil {
			o.unmet(r)
			continue
		}
		p := c.object("properties")
		p.skip("name", "description")
		if v, ok := p.quantity("memory_resource_limit", readSize); ok {
			if v = d.within(p, "memory_resource_limit", v, minMemory, 1<<60); f.memory < 1<<60 {
				f.memory += units.Bytes(v)
			}
		}
		d.hugePages(f, p, "huge_pages_resources")
	}
}

// vduCp reads a connection point of a VDU: a port.
func (d *draft) vduCp(key *yaml.Node) {
	o := d.node(key, "connection point")
	p := &port{node: key.Value, key: key, in: o.in}
	var f *function
	for _, r := range o.requirements() {
		switch r.name {
		case "virtual_binding":
			f = d.functions[r.target]
		case "virtual_link":
			p.link = d.joins(o, r)
		default:
			o.unmet(r)
		}
	}
	props := o.object("properties")
	props.skip("description")
	p.order, _ = props.integer("order")
	if n := props.value("vnic_type"); n != nil && n.Value != "normal" {
		delete(props.seen, "vnic_type")
	}
	if n := props.value("trunk_mode"); n != nil && n.Value != "false" {
		delete(props.seen, "trunk_mode")
	}
	d.layers(props)
	d.addresses(p, props)
	if f == nil {
		d.note(key, o.in, "give it a requirement virtual_binding", "it is bound to no VDU of the descriptor, so it is left out")
		return
	}
	d.ports[p.node] = p
	f.add(p)
}

// layers reads the protocols of a connection point or virtual link. Ethernet carries IP.
func (d *draft) layers(o *object) {
	for _, item := range o.list("layer_protocols") {
		n := o.resolve(item, o.in)
		if n != nil && n.Value != "ethernet" && n.Value != "ipv4" && n.Value != "ipv6" {
			o.note(item, o.in, "", "the layer protocol %s has no counterpart in a chain file: links carry Ethernet", parse.Quote(n.Value))
		}
	}
}

// addresses reads the fixed addresses of a connection point.
func (d *draft) addresses(p *port, props *object) {
	for _, item := range props.list("protocol") {
		protocol := d.open(item, p.in)
		protocol.skip("associated_layer_protocol")
		for _, item := range protocol.list("address_data") {
			data := d.open(item, p.in)
			data.skip("address_type")
			l2, l3 := data.object("l2_address_data"), data.object("l3_address_data")
			for o, field := range map[*object]string{l2: "mac_address_assignment", l3: "ip_address_assignment"} {
				if n := o.value(field); n != nil && n.Value != "true" { // the planner assigns addresses
					delete(o.seen, field)
				}
			}
			if n := l3.value("floating_ip_activated"); n != nil && n.Value != "false" {
				delete(l3.seen, "floating_ip_activated")
			}
			l3.skip("ip_address_type")
			p.fixed = append(p.fixed, l3.list("fixed_ip_address")...)
		}
	}
}

// external reads an external connection point on an internal virtual link: an uplink.
func (d *draft) external(key *yaml.Node) {
	o := d.node(key, "connection point")
	u := &port{node: key.Value, key: key, in: o.in}
	for _, r := range o.requirements() {
		if r.name != "internal_virtual_link" {
			o.unmet(r)
			continue
		}
		if l := d.joins(o, r); l != nil {
			l.members = append(l.members, u)
		} else if d.ports[r.target] != nil {
			d.note(r.key, o.in, "join its port by a link to an uplink, or to another function", "%s is a connection point of a VDU, not a virtual link", parse.Quote(r.target))
		}
	}
	p := o.object("properties")
	p.skip("description")
	d.layers(p)
	if len(p.list("protocol")) > 0 {
		delete(p.seen, "protocol")
	}
}

// exposed notes the ports that only the outside of the VNF reaches.
func (d *draft) exposed() {
	s := d.topology.object("substitution_mappings")
	s.skip("node_type", "capabilities")
	s.object("properties").skip("flavour_id")
	r := s.object("requirements")
	for _, key := range r.keys {
		r.skip(key.Value)
		target := s.target(r.values[key.Value])
		if p := d.ports[target]; p != nil && p.link == nil {
			d.note(key, "substitution_mappings", "add a link to it, such as one with an uplink",
				"%s leaves the VNF by %s, so its port is on no link", parse.Quote(strings.TrimSpace(target)), plainKey(key.Value))
		}
	}
}
