// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("chain.schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("chain.schema.json")
})

// schemaVerdict is "accepts", "rejects" or, for text that is no single
// document of JSON's types, "cannot read".
func schemaVerdict(text []byte) string {
	root, fault := readYAML("", text, Kind)
	if fault != nil || checkBounds("", root) != nil {
		return "cannot read"
	}
	var value any
	if err := root.Decode(&value); err != nil {
		return "cannot read"
	}
	asJSON, err := json.Marshal(value)
	if err != nil {
		return "cannot read"
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return "cannot read"
	}
	s, err := compiled()
	if err != nil {
		return "does not compile: " + err.Error()
	}
	if s.Validate(instance) != nil {
		return "rejects"
	}
	return "accepts"
}

func TestSchemaAcceptsWhatParses(t *testing.T) {
	for _, pattern := range []string{"testdata/good/*.yaml", "../../../examples/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files, error %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := schemaVerdict(text); got != "accepts" {
				t.Errorf("%s: the schema %s it", file, got)
			}
		}
	}
}

// The faults that a schema cannot express are those that bad files mark with
// "schema: accepts"; every other one must be caught by both.
func TestSchemaOnBadFiles(t *testing.T) {
	for _, file := range badFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Join(marked(text, schemaMark), " ")
		if got := schemaVerdict(text); got != want {
			t.Errorf("%s: the schema %s it; want %q", file, got, want)
		}
	}
}

// definition is the part of the schema that the parser has too.
type definition struct {
	Title       string                `json:"title"`
	Description string                `json:"description"`
	Default     any                   `json:"default"`
	Enum        []string              `json:"enum"`
	Pattern     string                `json:"pattern"`
	Required    []string              `json:"required"`
	Properties  map[string]definition `json:"properties"`
	Defs        map[string]definition `json:"$defs"`
}

func schemaRoot(t *testing.T) definition {
	t.Helper()
	var root definition
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	return root
}

// parserFields are the parser's tables by the schema's names for them; a
// required field ends with "!".
func parserFields() map[string][]string {
	return map[string][]string{
		"chain":     marks(chainFields),
		"hosts":     marks(hostsFields),
		"underlay":  marks(underlayFields),
		"policy":    marks(policyFields),
		"function":  marks(functionFields),
		"hugepages": marks(hugePageFields),
		"external":  marks(externalFields),
		"vm":        marks(vmFields),
		"port":      marks(portFields),
		"hold":      marks(holdFields),
		"link":      marks(linkFields),
		"messages":  marks(messagesFields),
		"uplink":    marks(uplinkFields),
		"requires":  marks(requiresFields),
		"qos":       marks(qdiscFields),
	}
}

func marks[T any](fields []field[T]) []string {
	var names []string
	for _, f := range fields {
		if f.required {
			names = append(names, f.name+"!")
		} else {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return names
}

func TestSchemaAndParserHaveTheSameFields(t *testing.T) {
	root := schemaRoot(t)
	objects := map[string]definition{"chain": root}
	for name, d := range root.Defs {
		if d.Properties != nil {
			objects[name] = d
		}
	}
	got := map[string][]string{}
	for name, d := range objects {
		for field := range d.Properties {
			if slices.Contains(d.Required, field) {
				field += "!"
			}
			got[name] = append(got[name], field)
		}
		slices.Sort(got[name])
	}
	if diff := cmp.Diff(parserFields(), got); diff != "" {
		t.Errorf("parser (-) and schema (+) differ:\n%s", diff)
	}
}

func TestSchemaAndParserHaveTheSameWords(t *testing.T) {
	root := schemaRoot(t)
	words := func(object, field string) string { return strings.Join(root.Defs[object].Properties[field].Enum, " ") }
	for _, c := range []struct {
		object, field string
		parser        any
	}{
		{"policy", "on_infeasible", policies},
		{"function", "runtime", runtimes},
		{"function", "restart", restarts},
		{"port", "face", faces},
		{"hold", "beyond", beyonds},
		{"link", "transport", transports},
		{"link", "isolation", isolations},
		{"link", "traffic", traffics},
		{"qos", "qdisc", qdiscNames()},
	} {
		if got, want := words(c.object, c.field), strings.Trim(fmt.Sprint(c.parser), "[]"); got != want {
			t.Errorf("%s.%s: schema has %q, parser %q", c.object, c.field, got, want)
		}
	}
}

func TestSchemaAndParserHaveTheSamePatterns(t *testing.T) {
	root := schemaRoot(t)
	for _, c := range []struct{ schema, parser string }{
		{root.Defs["name"].Pattern, namePattern.String()},
		{root.Defs["port"].Properties["name"].Pattern, portPattern.String()},
		{root.Defs["uplink"].Properties["uplink"].Pattern, interfacePattern.String()},
		{root.Defs["function"].Properties["image"].Pattern, imagePattern.String()},
		{root.Defs["external"].Properties["container"].Pattern, containerPattern.String()},
	} {
		if c.schema != c.parser {
			t.Errorf("schema has %q, parser %q", c.schema, c.parser)
		}
	}
}

func TestSchemaDescribesEverything(t *testing.T) {
	root := schemaRoot(t)
	check := func(name string, d definition) {
		if d.Title == "" || d.Description == "" {
			t.Errorf("%s has no title or no description", name)
		}
		for field, p := range d.Properties {
			if p.Description == "" {
				t.Errorf("%s.%s has no description", name, field)
			}
		}
	}
	check("chain", root)
	for name, d := range root.Defs {
		check(name, d)
	}
}

// least is a chain that gives nothing that has a default.
const least = `
apiVersion: drayage/v1
kind: Chain
name: least
functions:
  - name: a
    ports: [{name: p}, {name: q, face: native, hold: {packets: 1}}]
  - name: b
    ports: [{name: p}]
links:
  - name: l
    ends: [a.p, b.p]
    requires: {latency: 1ms}
    messages: {size: 1Ki}
`

func TestSchemaAndParserHaveTheSameDefaults(t *testing.T) {
	c, err := Parse("least", []byte(least))
	if err != nil {
		t.Fatal(err)
	}
	machine, err := Parse("least", []byte(strings.Replace(least, "- name: b", "- name: b\n    runtime: vm\n    vm: {}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	hosted, err := Parse("hosted", []byte("apiVersion: drayage/v1\nkind: Chain\nname: c\nhosts: {names: [a, b], underlay: {}}\nfunctions: [{name: f, host: a}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	f, p, l := c.Functions[0], c.Functions[0].Ports[0], c.Links[0]
	parser := map[string]any{
		"policy.on_infeasible": c.Policy.OnInfeasible,
		"policy.privileged":    c.Policy.Privileged,
		"function.runtime":     f.Runtime,
		"function.restart":     f.Restart,
		"function.pids":        512, // chain.Function says so of Pids 0; runtimes apply it
		"vm.kernel":            machine.Functions[1].VM.Kernel,
		"vm.hugepages":         machine.Functions[1].VM.HugePages,
		"vm.nohz_full":         machine.Functions[1].VM.NoHzFull,
		"vm.runtime":           machine.Functions[1].VM.Runtime,
		"port.face":            p.Face,
		"port.mtu":             p.MTU,
		"port.queues":          p.Queues,
		"link.transport":       l.Transport,
		"link.isolation":       l.Isolation,
		"link.traffic":         l.Traffic,
		"requires.percentile":  l.Requires.Percentile,
		"hold.beyond":          f.Ports[1].Hold.Beyond,
		"messages.count":       l.Messages.Count,
		"underlay.mtu":         hosted.Hosts.Underlay.MTU,
	}
	for name, d := range schemaRoot(t).Defs {
		for field, property := range d.Properties {
			key := name + "." + field
			got, want := property.Default, parser[key]
			if (got == nil) != (want == nil) || got != nil && fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: schema has the default %v, parser %v", key, got, want)
			}
		}
	}
}
