// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

// Placement asks for a node for each function of a chain. Chain files describe hosts instead.
type Placement struct {
	// NodeSelector are labels that a node must have.
	NodeSelector map[string]string
	// TopologyKey is the label that says where a node is: nodes with the same value are at one
	// place. Empty: each node is a place of its own, with the node's name.
	TopologyKey string
	// Lines join places. None: a network without delay joins all nodes.
	Lines []chain.HostLine
	// Functions are what functions need, by name; those without needs are absent.
	Functions map[string]FunctionNeeds
}

// FunctionNeeds are what a function needs of its node.
type FunctionNeeds struct {
	Host   string      // a node, or a place; empty: any
	CPUs   int         // whole ones
	Memory units.Bytes // 0: nothing is counted
}

// MaxLines is the maximum number of lines of a placement.
const MaxLines = 256

// placedFields are the fields of a function in an object that only a placement reads.
var placedFields = []string{"cpus", "memory", "host"}

// request is what an object says of a placement.
type request struct {
	version, kind string
	placement     *Placement
	functions     []placedFunction
}

type placedFunction struct {
	name  string
	needs FunctionNeeds
	at    map[string]parse.Position // of the fields in the object
	many  bool                      // it has instances
}

var placementFields = []parse.Field[Placement]{
	{Name: "nodeSelector", Doc: "The labels of the nodes that may have pods of the chain, as in a pod. Default: all nodes that can make its links.",
		Form: schema.Schema{{Name: "type", Value: "object"}}, Decode: decodeSelector},
	parse.ReadField("topologyKey", "The label that says at which place a node is, such as topology.kubernetes.io/zone. Nodes at one place have no delay between them, and nodes without the label get no pods of the chain. Default: each node is a place, with the node's name.",
		schema.Text(), decodeLabel, func(p *Placement) *string { return &p.TopologyKey }),
	{Name: "lines", Doc: "The lines between places, each of its own rate and delay. Packets take the route with the least delay. Default: a network without delay joins all nodes.",
		Form: schema.List(parse.ObjectSchema("line", "", placeLineFields), 1, MaxLines), Decode: decodePlaceLines},
}

var placeLineFields = append([]parse.Field[chain.HostLine]{
	{Name: "between", Required: true, Doc: "The two places: values of the label topologyKey, or names of nodes.",
		Form: schema.Set(schema.Text(), 2, 2), Decode: decodePlaces},
}, chain.LineFigures...)

// PlacementSchema is the schema of a placement. It refers to definitions of chain.Schema.
func PlacementSchema() schema.Schema {
	return parse.ObjectSchema("placement", "That the operator chooses the node of each function, as `dray plan` chooses hosts (docs/placement.md). The scheduler may then place the pods of a function on that node only.", placementFields)
}

var objectFields = append(parse.Header(chain.Kind, func(r *request) (apiVersion, ownKind *string) { return &r.version, &r.kind }), []parse.Field[request]{
	{Name: "placement", Decode: func(d *parse.Decoder, n *yaml.Node, r *request) {
		r.placement = &Placement{Functions: map[string]FunctionNeeds{}}
		parse.Object(d, n, "placement", placementFields, r.placement)
	}},
	{Name: "functions", Decode: func(d *parse.Decoder, n *yaml.Node, r *request) {
		for _, item := range n.Content {
			var f placedFunction
			f.at = d.Positions(parse.Object(d, item, "a function", needsFields, &f))
			r.functions = append(r.functions, f)
		}
	}},
}...)

var needsFields = []parse.Field[placedFunction]{
	{Name: "name", Decode: func(_ *parse.Decoder, n *yaml.Node, f *placedFunction) { f.name = n.Value }},
	{Name: "instances", Decode: func(_ *parse.Decoder, _ *yaml.Node, f *placedFunction) { f.many = true }},
	parse.ReadField("host", "", nil, decodePlace, func(f *placedFunction) *string { return &f.needs.Host }),
	parse.IntegerField("cpus", "", 1, chain.MaxCPUs, func(f *placedFunction) *int { return &f.needs.CPUs }),
	parse.ReadField("memory", "", nil, chain.DecodeMemory, func(f *placedFunction) *units.Bytes { return &f.needs.Memory }),
}

// ParsePlacement reads what the spec of an object says of a placement; nil: it asks for none.
// The error, if any, is an Invalid.
func ParsePlacement(spec []byte) (*Placement, error) {
	text, err := placementText(spec)
	if err != nil {
		return nil, Invalid{{Path: "spec", Text: err.Error()}}
	}
	r, err := parse.Document("", text, chain.Kind, "a spec", objectFields, &request{}, checkPlacement)
	if err != nil {
		return nil, translated(text, err)
	}
	return r.placement, nil
}

// placementText is what only a placement reads, with each value on a line of its own.
func placementText(spec []byte) ([]byte, error) {
	all, err := fieldsOf(spec)
	if err != nil {
		return nil, err
	}
	some := map[string]any{"apiVersion": chain.APIVersion, "kind": chain.Kind}
	if p, stated := all["placement"]; stated {
		some["placement"] = p
	}
	functions := []any{}
	for _, f := range objectsIn(all["functions"]) {
		needs := map[string]any{}
		for _, name := range append([]string{"name", "instances"}, placedFields...) {
			if v, stated := f[name]; stated {
				needs[name] = v
			}
		}
		functions = append(functions, needs)
	}
	some["functions"] = functions
	return json.MarshalIndent(some, "", " ")
}

// checkPlacement finds needs that nothing reads, and what no placement has yet.
func checkPlacement(d *parse.Decoder, r *request, _ map[string]*yaml.Node) {
	for _, f := range r.functions {
		for _, name := range placedFields {
			if at, stated := f.at[name]; stated && r.placement == nil {
				d.FailAt(at, "add placement: {} to the spec, or remove it: a pod states its own", "%s counts only if the chain asks for placement", name)
			}
		}
		if r.placement == nil {
			continue
		}
		if f.many {
			d.FailAt(f.at["instances"], "remove instances or placement", "functions with instances cannot be placed yet: their pods share one template")
		}
		if f.needs != (FunctionNeeds{}) {
			r.placement.Functions[f.name] = f.needs
		}
	}
}

// Unplace removes what only a placement reads from the spec of an object.
func Unplace(spec map[string]any) {
	delete(spec, "placement")
	for _, f := range objectsIn(spec["functions"]) {
		for _, name := range placedFields {
			delete(f, name)
		}
	}
}

// Names and labels of Kubernetes. The longest label has a prefix of 253 characters.
var (
	placePattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)
	labelPattern = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
)

func decodePlace(d *parse.Decoder, n *yaml.Node) string {
	return matching(d, n, "a place", placePattern)
}

func decodeLabel(d *parse.Decoder, n *yaml.Node) string {
	return matching(d, n, "a label", labelPattern)
}

func matching(d *parse.Decoder, n *yaml.Node, what string, pattern *regexp.Regexp) string {
	s, ok := d.Text(n, what)
	if ok && !pattern.MatchString(s) {
		d.Fail(n, "write it as `kubectl get nodes --show-labels` does", "%s cannot be %s", what, parse.Quote(s))
	}
	return s
}

func decodeSelector(d *parse.Decoder, n *yaml.Node, p *Placement) {
	n = parse.Deref(n)
	if !d.IsKind(n, yaml.MappingNode, "nodeSelector") {
		return
	}
	p.NodeSelector = map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		value, _ := d.Scalar(n.Content[i+1], "a label's value")
		p.NodeSelector[decodeLabel(d, n.Content[i])] = value
	}
}

func decodePlaceLines(d *parse.Decoder, n *yaml.Node, p *Placement) {
	seen := map[string]bool{}
	d.List(n, "lines", func(item *yaml.Node) {
		var l chain.HostLine
		parse.Object(d, item, "a line", placeLineFields, &l)
		pair := slices.Sorted(slices.Values(l.Between))
		if key := fmt.Sprint(pair); len(pair) == 2 && seen[key] {
			d.Fail(item, "describe the faster one", "two lines join %s and %s", parse.Quote(pair[0]), parse.Quote(pair[1]))
		} else {
			seen[key] = true
		}
		p.Lines = append(p.Lines, l)
	})
	if count := len(parse.Deref(n).Content); count == 0 || count > MaxLines {
		d.Fail(parse.Deref(n), fmt.Sprintf("describe 1 to %d, or leave lines out", MaxLines), "a placement cannot have %d lines", count)
	}
}

func decodePlaces(d *parse.Decoder, n *yaml.Node, l *chain.HostLine) {
	d.List(n, "between", func(item *yaml.Node) { l.Between = append(l.Between, decodePlace(d, item)) })
	if len(l.Between) != 2 || l.Between[0] == l.Between[1] {
		d.Fail(parse.Deref(n), "name two places", "a line joins two different places")
	}
}
