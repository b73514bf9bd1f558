// SPDX-License-Identifier: Apache-2.0

// Package manifest turns a chain file into a manifest of the Kubernetes resource Chain,
// and defines which fields of a chain file such an object has. It needs no cluster.
package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"go.yaml.in/yaml/v3"
)

// APIVersion is the version of the resource.
const APIVersion = "drayage.io/v1alpha1"

// The fields that an object has of a chain file, in its spec and in each function. A pod
// decides the rest of a function.
var (
	ChainFields    = []string{"policy", "functions", "links", "paths"}
	PolicyFields   = []string{"on_infeasible"}
	FunctionFields = append([]string{"name", "instances", "ports", "split"}, placedFields...)
)

// exportedFields are those that an object has without a placement.
var exportedFields = FunctionFields[:len(FunctionFields)-len(placedFields)]

// Limits of an object. A pod's claim has a request for each port of its function, and
// says which link each port is on, for each instance of the function. Kubernetes permits
// 32 of both in a claim.
const (
	MaxFunctions = 32
	MaxPorts     = 32
	MaxLinks     = 64
	MaxPaths     = 32
	MaxEnds      = 16
	// MaxPlannedLinks counts the links of each instance. Their verdicts are in one object.
	MaxPlannedLinks = 128
)

// Manifest is the object for one chain file.
type Manifest struct {
	Chain     string   `json:"chain"`
	Functions []string `json:"functions"`
	// LeftOut is what the object lacks of the file, one line for each function.
	LeftOut []string `json:"left_out"`
	// YAML is the manifest, with comments.
	YAML string `json:"manifest"`
	dpdk bool   // a function has dpdk ports
}

// Declared are the functions of a chain as its file declares them, each with its
// instances, or alone if it has none.
func Declared(c *chain.Chain) (all [][]*chain.Function) {
	for i := range c.Functions {
		f, last := &c.Functions[i], len(all)-1
		if f.Of != "" && last >= 0 && all[last][0].Of == f.Of {
			all[last] = append(all[last], f)
		} else {
			all = append(all, []*chain.Function{f})
		}
	}
	return all
}

// Template is the name of the ResourceClaimTemplate that the operator makes for a
// function.
func Template(chain, function string) string { return chain + "-" + function }

// Make converts a chain file. The error, if any, is a parse.Errors that lists what is
// wrong with the file, or what pods cannot have.
func Make(file string, data []byte) (*Manifest, error) {
	c, err := chain.Parse(file, data)
	if err != nil {
		return nil, err
	}
	if faults := unsupported(c); faults != nil {
		return nil, faults
	}
	root, fault := parse.ReadYAML(file, data, chain.Kind)
	if fault != nil {
		return nil, parse.Errors{fault}
	}
	m := &Manifest{Chain: c.Name}
	for _, f := range c.Functions {
		m.dpdk = m.dpdk || f.HasPort(chain.FaceDPDK)
	}
	for _, instances := range Declared(c) {
		m.Functions = append(m.Functions, instances[0].Declared())
	}
	spec := m.specOf(expand(root))
	text, err := encode(object(c.Name, spec))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	m.YAML = m.head(file) + text
	return m, nil
}

// specOf is the part of a chain file that an object has. It notes what it leaves out.
func (m *Manifest) specOf(root *yaml.Node) *yaml.Node {
	spec := keep(root, ChainFields, nil)
	if p := field(spec, "policy"); p != nil {
		*p = *keep(p, PolicyFields, nil)
	}
	for i, f := range items(field(spec, "functions")) {
		var dropped []string
		*f = *keep(f, exportedFields, &dropped)
		if len(dropped) > 0 {
			m.LeftOut = append(m.LeftOut, m.Functions[i]+": "+strings.Join(dropped, ", "))
		}
	}
	for _, judged := range slices.Concat(items(field(spec, "links")), items(field(spec, "paths"))) {
		plainNumbers(field(judged, "requires"))
	}
	return spec
}

// head is the comment that begins a manifest.
func (m *Manifest) head(file string) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(strings.TrimRight("# "+fmt.Sprintf(format, args...), " ") + "\n")
	}
	line("Made by `dray export --kubernetes %s`.", printable(file))
	if len(m.LeftOut) > 0 {
		line("Left out, because a pod decides it:")
		for _, text := range m.LeftOut {
			line("  %s", text)
		}
	}
	line("")
	line("A pod gets the ports of a function from a claim: interfaces, or sockets below /run/dray/ports.")
	line("  spec:")
	line("    resourceClaims: [{name: ports, resourceClaimTemplateName: %s}]", Template(m.Chain, m.Functions[0]))
	line("    containers: [{name: main, resources: {claims: [{name: ports}]}}]")
	line("The operator makes the templates: %s.", strings.Join(m.templates(), ", "))
	if m.dpdk {
		line("A container with dpdk ports starts its program by dray-eal, which replaces the argument $(DRAY_EAL):")
		line("  command: [/run/dray/bin/dray-eal, dpdk-testpmd, $(DRAY_EAL), --]")
	}
	line("Native and dpdk ports of a link share memory if their pods are on one node: use podAffinity.")
	return b.String()
}

func (m *Manifest) templates() []string {
	names := make([]string, len(m.Functions))
	for i, f := range m.Functions {
		names[i] = Template(m.Chain, f)
	}
	return names
}

// printable is a file name that cannot end a comment.
func printable(file string) string {
	if strings.ContainsFunc(file, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 }) {
		return parse.Quote(file)
	}
	return file
}
