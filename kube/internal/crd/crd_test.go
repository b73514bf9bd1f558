// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/drayage/dray/internal/spec/manifest"
	"github.com/drayage/dray/kube/internal/crd"
)

const file = "../../deploy/base/chain-crd.yaml"

func TestManifestIsCurrent(t *testing.T) {
	want, err := crd.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != string(want) {
		t.Errorf("%s is stale (%v): run `go generate ./internal/crd`", file, err)
	}
}

// server validates as the API server does, with its own packages.
type server struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

func newServer(t *testing.T) *server {
	t.Helper()
	definition, err := crd.Definition()
	if err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(definition)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&definition.Spec)
	definition.Status.StoredVersions = []string{"v1alpha1"}
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(definition, &internal, nil); err != nil {
		t.Fatal(err)
	}
	// Among others, this estimates the cost of each rule.
	for _, err := range crdvalidation.ValidateCustomResourceDefinition(context.Background(), &internal) {
		t.Error(err)
	}
	schema := internal.Spec.Validation
	if schema == nil {
		schema = internal.Spec.Versions[0].Schema
	}
	structural, err := structuralschema.NewStructural(schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return &server{structural: structural, schema: validator, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

// refusals are what the API server says of an object; empty: it accepts it.
func (s *server) refusals(t *testing.T, object map[string]any) string {
	t.Helper()
	var all field.ErrorList
	for _, path := range pruning.PruneWithOptions(object, s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		all = append(all, field.Invalid(field.NewPath(path), "", "unknown field"))
	}
	all = append(all, validation.ValidateCustomResource(nil, object, s.schema)...)
	all = append(all, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if len(all) == 0 { // else the server evaluates no rules
		broken, _ := s.rules.Validate(context.Background(), nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
		all = append(all, broken...)
	}
	if len(all) == 0 {
		return ""
	}
	return all.ToAggregate().Error()
}

// read makes an object from a manifest, with numbers as the API server has them.
func read(t *testing.T, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	return whole(object).(map[string]any)
}

// whole turns floating-point numbers that are whole into integers.
func whole(v any) any {
	switch v := v.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case map[string]any:
		for name := range v {
			v[name] = whole(v[name])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	}
	return v
}

func TestExportedExamplesAreValid(t *testing.T) {
	s, valid := newServer(t), 0
	for _, pattern := range []string{"../../../examples/*.yaml", "../../../examples/*/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			m, err := manifest.Make(file, text)
			if err != nil {
				continue // a test of manifest says why
			}
			valid++
			if why := s.refusals(t, read(t, m.YAML)); why != "" {
				t.Errorf("%s: %s", file, why)
			}
		}
	}
	if valid == 0 {
		t.Error("no example is exported")
	}
}

// full uses every field that an object has.
const full = `
apiVersion: drayage.io/v1alpha1
kind: Chain
metadata: {name: c}
spec:
  policy: {on_infeasible: warn}
  placement: {nodeSelector: {pool: ran}, topologyKey: topology.kubernetes.io/zone, lines: [{between: [site-1.example, edge], rate: 10Gbps, delay: 20us, length: 7km}]}
  functions:
  - name: a
    host: site-1.example
    cpus: 4
    memory: 8Gi
    split: 2
    ports:
    - {name: p0, face: native, ip: 10.0.0.1/24, mac: "02:00:00:00:00:01", mtu: 1600, queues: 2, hold: {packets: 8, beyond: copy}}
    - {name: p1, face: native, qos: {qdisc: tbf, rate: 1Gbps, burst: 64k}}
    - {name: p2, face: native, qos: {qdisc: slot, slot: 500us, offset: 393us, clock: realtime, limit: 100}}
  - name: b
    split: 7b
    ports: [{name: p0, face: native}, {name: p1, face: native}, {name: p2, face: native}]
  links:
  - name: ab
    ends: [a.p0, b.p0]
    transport: shm
    isolation: link
    traffic: udp
    frame: 1518
    load: 100Mbps
    messages: {size: 65536, count: 4}
    requires: {latency: 1.5ms, percentile: 99.9, packet_delay_variation: 1ms, packet_loss_ratio: 0.0001, min_bitrate: 400Mbps, max_bitrate: 1Gbps, packet_rate: 100kpps, mtu: 1600}
  - {name: cd, ends: [a.p1, b.p1], forwarding: learning, qos: {qdisc: htb, rate: 1Gbps, ceil: 2Gbps, burst: 1500, child: {qdisc: fq_codel, limit: 100}}}
  - name: ef
    ends: [a.p2, b.p2]
    qos:
      qdisc: htb
      rate: 1Gbps
      classes:
      - {name: first, dscp: [46, 48], pcp: [7], meta: 1, rate: 1Mbps, ceil: 2Mbps, burst: 1500, priority: 1, child: {qdisc: slot, slot: 1ms}}
      - {name: rest, rate: 1Mbps, child: {qdisc: codel, target: 5ms, interval: 100ms, ecn: true}}
  paths:
  - name: dl
    from: a.p0
    through: [b, c.p0]
    to: d.p0
    directions: forward
    load: 10Mbps
    gtpu: {at: from, from: 198.18.0.2, to: 198.18.0.1, teid: 1, tunnels: 1000, pdu: up, qfi: 9}
    requires: {latency: 5ms, percentile: 90, packet_loss_ratio: 0.01, min_bitrate: 100Mbps, mtu: 1500}
  - {name: ul, from: a.p1, to: b.p1, requires: {min_bitrate: 1Mbps}}
status:
  observedGeneration: 1
  conditions: [{type: Planned, status: "True", reason: Planned, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
  links: [{name: ab, transport: shm, ends: [{function: a, port: p0, pod: a-1, node: n1}], requirements: [{type: latency, status: Unknown, reason: NotMeasured, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}]
  paths: [{name: dl, links: [ab, cd], requirements: [{type: latency, status: Unknown, reason: NotMeasured, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}]
  placement: [{function: a, node: n1, reason: no other host costs less}]
  ready: 0/1
  verdict: 1 unknown
`

func TestWrongObjectsAreRefused(t *testing.T) {
	s := newServer(t)
	if why := s.refusals(t, read(t, full)); why != "" {
		t.Fatal(why)
	}
	for _, c := range []struct{ old, new, want string }{
		{"{name: c}", "{name: a-chain-with-a-name-of-more-than-32}", "the name of a chain has 1 to 32 of a-z, 0-9 and -: shorten metadata.name"},
		{"{name: c}", "{name: a.b}", "the name of a chain has 1 to 32 of a-z, 0-9 and -: shorten metadata.name, and replace dots"},
		{"ends: [a.p0, b.p0]", "ends: [a.p0, b.p9]", `an end names a function and one of its ports: write "function.port", or add the port to the function`},
		{"ends: [a.p0, b.p0]", "ends: [a.p0, c.p0]", "an end names a function and one of its ports"},
		{"ends: [a.p0, b.p0]", "ends: [a.p0, b.p9]", "each port is on exactly one link: add a link to it, or give each link a port of its own"},
		{"ends: [a.p1, b.p1]", "ends: [a.p1, b.p0]", "each port is on exactly one link"},
		{"ends: [a.p0, b.p0]", "ends: [a.p0, a.p0]", `spec.links[0].ends[1]: Duplicate value: "a.p0"`},
		{"ends: [a.p0, b.p0]", "ends: [a.p0]", "spec.links[0].ends: Invalid value: 1: spec.links[0].ends in body should have at least 2 items"},
		{"ends: [a.p0, b.p0]", "ends: [a.p0, {uplink: eth0}]", "spec.links[0].ends[1]"},
		{"name: b\n", "name: a\n", `spec.functions[1]: Duplicate value: {"name":"a"}`},
		{"name: cd", "name: ab", `spec.links[1]: Duplicate value: {"name":"ab"}`},
		{"{name: p1, face: native}, ", "{name: p0, face: native}, ", `spec.functions[1].ports[1]: Duplicate value: {"name":"p0"}`},
		{"{name: p0, face: native}, ", "{name: lo, face: native}, ", "choose another name: lo, all, default are reserved"},
		{"{name: p0, face: native}, ", "{name: p0, face: tap}, ", `spec.functions[1].ports[0].face: Unsupported value: "tap": supported values: "netdev", "native", "dpdk"`},
		{"name: b\n", "name: b\n    image: debian\n", "spec.functions[1].image: Invalid value"},
		{"policy: {on_infeasible: warn}", "policy: {privileged: true}", "spec.policy.privileged: Invalid value"},
		{"forwarding: learning", "forwarding: direct, isolation: none", "spec.links[1].isolation: Unsupported value"},
		{"latency: 1.5ms, percentile: 99.9, packet_delay_variation: 1ms", "percentile: 99.9", "percentile has nothing to apply to: add latency or packet_delay_variation, or remove it"},
		{"placement: {", "x: {", "spec.x: Invalid value"},
		{"  placement: {nodeSelector: {pool: ran}, topologyKey: topology.kubernetes.io/zone, lines: [{between: [site-1.example, edge], rate: 10Gbps, delay: 20us, length: 7km}]}\n", "", "cpus, memory and host of a function count only if the chain asks for placement: add placement: {}"},
		{"name: b\n", "name: b\n    instances: 2\n", "functions with instances cannot be placed yet: remove instances or placement"},
		{"length: 7km", "length: 7 km", "spec.placement.lines[0].length: Invalid value"},
		{"[site-1.example, edge]", "[edge]", "spec.placement.lines[0].between in body should have at least 2 items"},
		{"cpus: 4", "cpus: 4-7", "spec.functions[0].cpus: Invalid value"},
		{"split: 7b", "split: 9", "spec.functions[1].split"},
		{"split: 7b", "split: 7d", "spec.functions[1].split"},
		{"latency: 1.5ms", "latency: 1.5 ms", "spec.links[0].requires.latency: Invalid value"},
		{"packet_loss_ratio: 0.0001", "packet_loss_ratio: 0", "spec.links[0].requires.packet_loss_ratio: Invalid value: 0: spec.links[0].requires.packet_loss_ratio in body should be greater than 0"},
		{"mtu: 1600, queues", "mtu: 20, queues", "should be greater than or equal to 68"},
		{"child: {qdisc: fq_codel", "child: {qdisc: htb", `spec.links[1].qos.child.qdisc: Unsupported value: "htb"`},
		{"burst: 1500", "burst: 15 Kilo", "spec.links[1].qos.burst"},
		{"name: rest", "name: first", `spec.links[2].qos.classes[1]: Duplicate value: {"name":"first"}`},
		{"dscp: [46, 48]", "dscp: [64]", "spec.links[2].qos.classes[0].dscp[0]"},
		{"{qdisc: slot, slot: 1ms}", "{qdisc: prio}", `spec.links[2].qos.classes[0].child.qdisc: Unsupported value: "prio"`},
		{"{qdisc: slot, slot: 1ms}", "{qdisc: codel, classes: [{name: x}]}", "spec.links[2].qos.classes[0].child.classes"},
		{"{qdisc: slot, slot: 1ms}", "{qdisc: codel, rate: 1Mbps}", "spec.links[2].qos.classes[0].child.rate"},
		{"child: {qdisc: fq_codel, limit: 100}", "child: {qdisc: fq_codel, at: switch}", "spec.links[1].qos.child.at"},
		{"name: ul", "name: dl", `spec.paths[1]: Duplicate value: {"name":"dl"}`},
		{"requires: {min_bitrate: 1Mbps}", "requires: {}", "the path requires nothing: state a latency, a packet_loss_ratio, a min_bitrate or an mtu"},
		{"requires: {min_bitrate: 1Mbps}", "requires: {min_bitrate: 1Mbps, percentile: 99}", "percentile has nothing to apply to: add latency, or remove it"},
		{"requires: {min_bitrate: 1Mbps}", "requires: {mtu: 67}", "spec.paths[1].requires.mtu: Invalid value: 67"},
		{"requires: {min_bitrate: 1Mbps}", "requires: {mtu: 1500B}", "spec.paths[1].requires.mtu"},
		{"from: a.p1", "from: a", "spec.paths[1].from"},
		{"directions: forward", "directions: back", `spec.paths[0].directions: Unsupported value: "back"`},
		{"pdu: up", "pdu: left", `spec.paths[0].gtpu.pdu: Unsupported value: "left"`},
		{"clock: realtime", "clock: utc", `qos.clock: Unsupported value: "utc"`},
	} {
		text := strings.Replace(full, c.old, c.new, 1)
		if text == full {
			t.Errorf("%s is not in the object", c.old)
		}
		if why := s.refusals(t, read(t, text)); !strings.Contains(why, c.want) {
			t.Errorf("%s: %q, want %q", c.new, why, c.want)
		}
	}
}
