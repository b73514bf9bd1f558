// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

// Exported is the descriptor of a chain.
type Exported struct {
	Chain   string `json:"chain"`
	LeftOut []Note `json:"left_out"`
	YAML    string `json:"descriptor"`
}

// Names of node templates that no function, port or link has: those have small letters.
const (
	selfNode   = "VNF"
	linkPrefix = "VL_"
)

// defaultMemory is what a machine has whose function has no limit.
const defaultMemory units.Bytes = 512 << 20

// writer makes the VNFD of a chain: a function is a VDU, a port its connection point, a
// link a virtual link, and an uplink an external connection point.
type writer struct {
	c         *chain.Chain
	notes     *notes
	templates *yaml.Node // node_templates
	policies  *yaml.Node
	outside   *yaml.Node                 // requirements of the VNF: connection points that lead outside
	joined    map[chain.End]bool         // ports of links, by Function and Port
	subnets   map[*chain.Link]*yaml.Node // cidr and version, of links with addresses
}

// Export converts a chain file. The error, if any, is a parse.Errors about the file.
func Export(file string, data []byte) (*Exported, error) {
	c, err := chain.Parse(file, data)
	if err != nil {
		return nil, err
	}
	w := &writer{c: c, notes: &notes{}, templates: pairs(), policies: sequence(), outside: pairs(),
		joined: map[chain.End]bool{}, subnets: map[*chain.Link]*yaml.Node{}}
	w.notes.file(file)
	if err := w.leftOut(file, data); err != nil {
		return nil, err
	}
	w.node(selfNode, w.nodeType())
	for i := range c.Functions {
		w.vdu(&c.Functions[i])
	}
	for i := range c.Links {
		w.virtualLink(&c.Links[i], w.linkNode(&c.Links[i]))
	}
	for i := range c.Functions {
		w.loosePorts(&c.Functions[i])
	}
	text, err := encode([]string{
		fmt.Sprintf("Made by `dray export --sol001 %s`.", file),
		"A VNFD of ETSI GS NFV-SOL 001, version " + Version + ". Put ETSI's file " + typesFile + " beside it.",
	}, w.document())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &Exported{Chain: c.Name, LeftOut: w.notes.sorted(), YAML: text}, nil
}

// nodeType is the type of the VNF.
func (w *writer) nodeType() string { return "drayage." + w.c.Name }

// document is the whole service template.
func (w *writer) document() *yaml.Node {
	declared := sequence()
	for i := 0; i < len(w.outside.Content); i += 2 {
		declared.Content = append(declared.Content, pairs(w.outside.Content[i].Value, pairs(
			"capability", text("tosca.capabilities.nfv.VirtualLinkable"),
			"relationship", text("tosca.relationships.nfv.VirtualLinksTo"),
			"occurrences", inline(sequence(integer(0), integer(1))))))
	}
	return pairs(
		"tosca_definitions_version", text("tosca_simple_yaml_1_3"),
		"description", text("The chain "+w.c.Name),
		"imports", sequence(text(typesFile)),
		"node_types", pairs(w.nodeType(), pairs("derived_from", text(typeVNF), "properties", w.identity(), "requirements", filled(declared))),
		"topology_template", pairs(
			"substitution_mappings", pairs("node_type", text(w.nodeType()),
				"properties", pairs("flavour_id", text(flavour)), "requirements", filled(w.outside)),
			"node_templates", w.templates,
			"policies", filled(w.policies)),
	)
}

// flavour is the id of the only deployment flavour.
const flavour = "default"

// identity are the properties of the VNF, as defaults of its type. Its id follows from
// the chain's name, so that it stays the same.
func (w *writer) identity() *yaml.Node {
	h := sha256.Sum256([]byte("drayage/" + w.c.Name))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80 // RFC 9562, version 8
	all := pairs()
	add := func(name, value string) {
		all.Content = append(all.Content, text(name), pairs("type", text("string"), "default", text(value)))
	}
	add("descriptor_id", fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16]))
	add("descriptor_version", "1.0")
	add("provider", "Drayage")
	add("product_name", w.c.Name)
	add("software_version", "1.0")
	add("flavour_id", flavour)
	add("flavour_description", "The only flavour")
	all.Content = append(all.Content, text("vnfm_info"), pairs("type", text("list"), "entry_schema", pairs("type", text("string")),
		"default", words("etsivnfm:v"+Version)))
	return all
}

func (w *writer) node(name, kind string, rest ...any) {
	w.templates.Content = append(w.templates.Content, pairs(name, pairs(append([]any{"type", text(kind)}, rest...)...)).Content...)
}

// vdu is a function. SOL001 wants CPUs and memory of each VDU: a function without its
// own shares one CPU, and memory that is no limit.
func (w *writer) vdu(f *chain.Function) {
	cpu := pairs("num_virtual_cpu", integer(int64(max(1, f.CPUs.Number()))))
	if n := f.CPUs.Number(); n == 0 {
		cpu.Content = append(cpu.Content, text("virtual_cpu_oversubscription_policy"), text("shared"))
	} else {
		cpu.Content = append(cpu.Content, text("virtual_cpu_pinning"), pairs("virtual_cpu_pinning_policy", text("dynamic")))
	}
	mem := pairs("virtual_mem_size", text(writeSize(cmp.Or(f.Memory, defaultMemory))))
	if f.Memory == 0 {
		mem.Content = append(mem.Content, text("virtual_mem_oversubscription_policy"), text("shared"))
	}
	mem.Content = append(mem.Content, text("numa_enabled"), boolean(false))
	huge := sequence()
	for _, h := range f.HugePages {
		huge.Content = append(huge.Content, pairs("hugepage_size", text(writeSize(h.Size)), "requested_size", text(writeSize(h.Limit))))
	}
	mem.Content = append(mem.Content, pairs("huge_pages_requirements", filled(huge)).Content...)
	w.node(f.Name, typeCompute,
		"properties", pairs("name", text(f.Name), "description", text(f.Name),
			"vdu_profile", pairs("min_number_of_instances", integer(1), "max_number_of_instances", integer(1))),
		"capabilities", pairs("virtual_compute", pairs("properties", pairs("virtual_cpu", cpu, "virtual_memory", mem))))
	w.policies.Content = append(w.policies.Content, pairs(f.Name+"_initial", pairs(
		"type", text(typeInitial), "targets", words(f.Name),
		"properties", pairs("initial_delta", pairs("number_of_instances", integer(1))))))
}

// connectionPoint is a port on a link.
func (w *writer) connectionPoint(e chain.End, l *chain.Link, node string) {
	f := w.c.Function(e.Function)
	i := slices.IndexFunc(f.Ports, func(p chain.Port) bool { return p.Name == e.Port })
	p := &f.Ports[i]
	w.node(f.Name+"_"+p.Name, typeVduCp,
		"properties", pairs("layer_protocols", words(version(p)), "order", integer(int64(i)), "protocol", w.address(l, p)),
		"requirements", sequence(pairs("virtual_binding", text(f.Name)), pairs("virtual_link", text(node))))
}

// version is that of a port's address, and IPv4 for one that the planner chooses.
func version(p *chain.Port) string {
	if p.IP.Addr().Is6() {
		return "ipv6"
	}
	return "ipv4"
}

// loosePorts are the ports of a function that are on no link. SOL001 wants a virtual
// link of each connection point, so they get their own.
func (w *writer) loosePorts(f *chain.Function) {
	for _, p := range f.Ports {
		end := chain.End{Function: f.Name, Port: p.Name}
		if !w.joined[end] {
			w.virtualLink(&chain.Link{Ends: []chain.End{end}}, linkPrefix+f.Name+"_"+p.Name)
		}
	}
}

// ends are the connection points of a link, in its order.
func (w *writer) ends(l *chain.Link, node string) {
	for _, e := range l.Ends {
		if !e.IsUplink() {
			w.joined[chain.End{Function: e.Function, Port: e.Port}] = true
			w.connectionPoint(e, l, node)
			continue
		}
		name := node + "_" + e.Uplink
		w.node(name, typeVnfExtCp, "properties", pairs("layer_protocols", words("ipv4")),
			"requirements", sequence(pairs("internal_virtual_link", text(node))))
		w.outside.Content = append(w.outside.Content, text(name), words(name, "external_virtual_link"))
	}
}

// address is the fixed address of a port, and the subnet of its link. SOL001 has none on
// a link that leads outside.
func (w *writer) address(l *chain.Link, p *chain.Port) *yaml.Node {
	if !p.IP.IsValid() || uplinkOf(l) != "" {
		return nil
	}
	w.subnets[l] = pairs("ip_version", text(version(p)), "cidr", text(p.IP.Masked().String()))
	return sequence(pairs("associated_layer_protocol", text(version(p)), "address_data", sequence(pairs(
		"address_type", text("ip_address"),
		"l3_address_data", pairs("floating_ip_activated", boolean(false), "fixed_ip_address", words(p.IP.Addr().String()))))))
}

func uplinkOf(l *chain.Link) string {
	for _, e := range l.Ends {
		if e.IsUplink() {
			return e.Uplink
		}
	}
	return ""
}

// linkNode is the node template of a link: its name, if no function has that.
func (w *writer) linkNode(l *chain.Link) string {
	if w.c.Function(l.Name) != nil {
		return linkPrefix + l.Name
	}
	return l.Name
}

// virtualLink is a link with its ends and requirements.
func (w *writer) virtualLink(l *chain.Link, node string) {
	many := len(l.Ends) > 2
	w.ends(l, node)
	pattern := "line"
	if many {
		pattern = "mesh"
	}
	layers, data := []string{}, sequence()
	if mtu := w.mtu(l); mtu != defaultMTU {
		layers = append(layers, "ethernet")
		data.Content = append(data.Content, pairs("associated_layer_protocol", text("ethernet"), "l2_protocol_data", pairs("vlan_transparent", boolean(false), "mtu", integer(int64(mtu)))))
	}
	version := "ipv4"
	if subnet := w.subnets[l]; subnet != nil {
		version = subnet.Content[1].Value // its ip_version
		data.Content = append(data.Content, pairs("associated_layer_protocol", text(version), "l3_protocol_data", subnet))
	}
	r := l.Requires
	w.node(node, typeVnfVL, "properties", pairs(
		"connectivity_type", pairs("layer_protocols", words(append(layers, version)...), "flow_pattern", text(pattern)),
		"vl_profile", pairs(
			"max_bitrate_requirements", bitrate(int64(min(cmp.Or(r.MaxBitrate, noBitrate), noBitrate)), many),
			"min_bitrate_requirements", bitrate(int64(min(r.MinBitrate, noBitrate)), many),
			"qos", qos(r),
			"virtual_link_protocol_data", filled(data))))
}

// defaultMTU is that of a port which states none.
const defaultMTU = 1500

// mtu is that of the link's ports, all of which have the same.
func (w *writer) mtu(l *chain.Link) int {
	for _, e := range l.Ends {
		if f := w.c.Function(e.Function); f != nil {
			return f.Port(e.Port).MTU
		}
	}
	return defaultMTU
}

// bitrate is a rate that holds between two ends, and on each branch of a mesh.
func bitrate(v int64, many bool) *yaml.Node {
	n := pairs("root", integer(v))
	if many {
		n.Content = append(n.Content, text("leaf"), integer(v))
	}
	return n
}

// qos has all bounds of delay if there is any bound; nil: there is none.
func qos(r chain.Requires) *yaml.Node {
	if r.Latency == 0 && r.PDV == 0 && r.LossRatio == nil {
		return nil
	}
	n := pairs("latency", text(writeTime(cmp.Or(r.Latency, noDuration))), "packet_delay_variation", text(writeTime(cmp.Or(r.PDV, noDuration))))
	if r.LossRatio != nil {
		n.Content = append(n.Content, text("packet_loss_ratio"), float(float64(*r.LossRatio)))
	}
	return n
}

// declaredIn is the part of a chain file that a note is about.
func declaredIn(kind, name string) string { return strings.TrimSpace(kind + " " + plainKey(name)) }
