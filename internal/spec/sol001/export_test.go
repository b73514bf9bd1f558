// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestExport compares a descriptor and its notes with those in testdata.
func TestExport(t *testing.T) {
	const file = "testdata/full.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Export(file, text)
	if err != nil {
		t.Fatal(err)
	}
	var notes strings.Builder
	for _, n := range got.LeftOut {
		notes.WriteString(n.String() + "\n")
	}
	golden(t, "testdata/full.vnfd.yaml", got.YAML)
	golden(t, "testdata/full.vnfd.notes.txt", notes.String())
}

func TestExportRefusesAnInvalidChain(t *testing.T) {
	if _, err := Export("c.yaml", []byte("kind: Chain\n")); err == nil || !strings.Contains(err.Error(), "c.yaml:1:1") {
		t.Errorf("%v", err)
	}
}

// fields are what SOL001 4.4.1 says of the types that an export has: the fields of each,
// with a ! if it is required. A slash leads to the type of a field's value, and [] to
// that of a list's items.
var fields = map[string][]string{
	"Compute":                  {"name!", "description!", "boot_order", "nfvi_constraints", "monitoring_parameters", "configurable_properties", "vdu_profile!/profile", "boot_data"},
	"profile":                  {"min_number_of_instances!", "max_number_of_instances!", "nfvi_maintenance_info"},
	"virtual_compute":          {"logical_node", "requested_additional_capabilities", "compute_requirements", "virtual_memory!/memory", "virtual_cpu!/cpu", "virtual_local_storage"},
	"memory":                   {"virtual_mem_size!", "virtual_mem_oversubscription_policy", "vdu_mem_requirements", "numa_enabled!", "huge_pages_requirements[]hugepages"},
	"hugepages":                {"hugepage_size!", "requested_size!"},
	"cpu":                      {"cpu_architecture", "num_virtual_cpu!", "virtual_cpu_clock", "virtual_cpu_oversubscription_policy", "vdu_cpu_requirements", "virtual_cpu_pinning/pinning"},
	"pinning":                  {"virtual_cpu_pinning_policy", "virtual_cpu_pinning_rule"},
	"VduCp":                    {"layer_protocols!", "ip_stack_mode", "role", "description", "protocol[]protocol", "trunk_mode", "bitrate_requirement", "virtual_network_interface_requirements", "order", "vnic_type"},
	"VnfExtCp":                 {"layer_protocols!", "ip_stack_mode", "role", "description", "protocol[]protocol", "trunk_mode", "virtual_network_interface_requirements"},
	"protocol":                 {"associated_layer_protocol!", "address_data[]address"},
	"address":                  {"address_type!", "l2_address_data", "l3_address_data/l3address"},
	"l3address":                {"ip_address_assignment", "ip_address_assignment_subtype", "floating_ip_activated!", "ip_address_type", "number_of_ip_address", "fixed_ip_address"},
	"VnfVirtualLink":           {"connectivity_type!/connectivity", "description", "test_access", "vl_profile!/vlprofile", "monitoring_parameters", "nfvi_maintenance_info", "externally_managed"},
	"connectivity":             {"layer_protocols!", "flow_pattern"},
	"vlprofile":                {"max_bitrate_requirements!/bitrate", "min_bitrate_requirements!/bitrate", "qos/qos", "virtual_link_protocol_data[]data"},
	"bitrate":                  {"root!", "leaf"},
	"qos":                      {"latency!", "packet_delay_variation!", "packet_loss_ratio"},
	"data":                     {"associated_layer_protocol!", "l2_protocol_data/l2", "l3_protocol_data/l3"},
	"l2":                       {"name", "network_type", "vlan_transparent!", "mtu", "segmentation_id"},
	"l3":                       {"name", "ip_version!", "cidr!", "ip_allocation_pools", "gateway_ip", "dhcp_enabled", "ipv6_address_mode"},
	"VduInitialDelta":          {"initial_delta!/level"},
	"level":                    {"number_of_instances!"},
	"requirements of Compute":  {},
	"requirements of VduCp":    {"virtual_link", "virtual_binding!"},
	"requirements of VnfExtCp": {"external_virtual_link", "internal_virtual_link!"},
}

// scalars are the forms of TOSCA's scalar-units.
var scalars = map[string]*regexp.Regexp{
	"virtual_mem_size": size, "hugepage_size": size, "requested_size": size, "latency": span, "packet_delay_variation": span,
	"root": whole, "leaf": whole, "mtu": whole, "order": whole, "num_virtual_cpu": whole, "packet_loss_ratio": regexp.MustCompile(`^0\.[0-9]+$`),
}

var (
	size  = regexp.MustCompile(`^[1-9][0-9]* ([KMGT]i)?B$`)
	span  = regexp.MustCompile(`^[0-9]+(\.[0-9]+)? (s|ms|us|ns)$`)
	whole = regexp.MustCompile(`^[0-9]+$`)
)

// TestExportHasTheTypes holds random exports against the types of SOL001.
func TestExportHasTheTypes(t *testing.T) {
	for seed := range uint64(20) {
		var d struct {
			Topology struct {
				Substitution struct {
					Requirements map[string][]string
				} `yaml:"substitution_mappings"`
				Nodes    map[string]template441   `yaml:"node_templates"`
				Policies []map[string]template441 `yaml:"policies"`
			} `yaml:"topology_template"`
		}
		if err := yaml.Unmarshal([]byte(exported(t, randomChain(rand.New(rand.NewPCG(seed, 1)))).YAML), &d); err != nil {
			t.Fatal(err)
		}
		for _, p := range d.Topology.Policies {
			for name, n := range p {
				n.check(t, name)
				if _, ok := d.Topology.Nodes[n.Targets[0]]; !ok {
					t.Errorf("%s has a target that is not there", name)
				}
			}
		}
		for name, n := range d.Topology.Nodes {
			if name == selfNode {
				continue
			}
			n.check(t, name)
			for _, r := range n.Requirements {
				for _, target := range r {
					if _, ok := d.Topology.Nodes[target]; !ok {
						t.Errorf("%s requires %s, which is not there", name, target)
					}
				}
			}
		}
		for name, r := range d.Topology.Substitution.Requirements {
			if _, ok := d.Topology.Nodes[r[0]]; !ok {
				t.Errorf("%s exposes %s, which is not there", name, r[0])
			}
		}
	}
}

// template441 is a node template or policy.
type template441 struct {
	Type         string
	Targets      []string
	Properties   map[string]any
	Capabilities map[string]struct{ Properties map[string]any }
	Requirements []map[string]string
}

func (n template441) check(t *testing.T, name string) {
	t.Helper()
	kind := n.Type[strings.LastIndex(n.Type, ".")+1:]
	checkFields(t, name, kind, n.Properties)
	for capability, c := range n.Capabilities {
		checkFields(t, name, capability, c.Properties)
	}
	if !strings.HasPrefix(n.Type, "tosca.nodes.") {
		return
	}
	all := map[string]any{}
	for _, r := range n.Requirements {
		for key, target := range r {
			all[key] = target
		}
	}
	if kind != "VnfVirtualLink" {
		checkFields(t, name, "requirements of "+kind, all)
	}
}

// checkFields holds a value of a type against its fields.
func checkFields(t *testing.T, in, kind string, value map[string]any) {
	t.Helper()
	known, ok := fields[kind]
	if !ok {
		t.Fatalf("%s: no type %s", in, kind)
	}
	var names []string
	for _, f := range known {
		f, list, isList := strings.Cut(f, "[]")
		f, of, _ := strings.Cut(f, "/")
		name, required := strings.CutSuffix(f, "!")
		names = append(names, name)
		got, ok := value[name]
		switch {
		case required && !ok:
			t.Errorf("%s: %s has no %s", in, kind, name)
		case ok && isList:
			for _, item := range got.([]any) {
				checkFields(t, in, list, item.(map[string]any))
			}
		case ok && of != "":
			checkFields(t, in, of, got.(map[string]any))
		}
	}
	for name, v := range value {
		if !slices.Contains(names, name) {
			t.Errorf("%s: %s has no field %s", in, kind, name)
		}
		if form := scalars[name]; form != nil && !form.MatchString(plain(t, v)) {
			t.Errorf("%s: %s of %s cannot be %v", in, name, kind, v)
		}
	}
}

// plain is a scalar as YAML writes it.
func plain(t *testing.T, v any) string {
	t.Helper()
	if f, ok := v.(float64); ok {
		return float(f).Value
	}
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
