// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/drayage/dray/internal/spec/parse"
	"go.yaml.in/yaml/v3"
)

// Limits of a descriptor's imports. Each file is read once, so imports may form a circle.
const (
	maxFiles   = 64
	maxBytes   = 4 * parse.MaxSize // of all files together; parsed, they take many times as much
	maxDerived = 32                // steps from a type to a type of SOL001
)

// template is one service template.
type template struct {
	*scope
	path     string // in the source
	root     *object
	topology *object
	nodes    *object // node_templates
	// substitutes is the node type that the template describes, or "".
	substitutes string
	flavour     string // flavour_id of the substitution, or ""
}

// loader reads a descriptor with all that it imports.
type loader struct {
	src       *Source
	notes     *notes
	bytes     int               // read so far
	templates []*template       // the entry first
	derived   map[string]string // by type of the imported files: the type that it is derived from
	products  map[string]string // by type of the imported files: the default of its product_name
}

// nameOne is the fix for a file that is no descriptor.
const nameOne = "name an NSD or VNFD of ETSI GS NFV-SOL 001"

// declarations are the fields of a service template that define types and say nothing
// of a network.
var declarations = []string{
	"tosca_definitions_version", "description", "imports", "dsl_definitions", "repositories", "namespace",
	"node_types", "data_types", "artifact_types", "capability_types", "relationship_types", "interface_types", "group_types", "policy_types",
}

// load reads the entry and its imports. The error is about the entry.
func (l *loader) load() error {
	type file struct {
		path     string
		importer *scope
		at       *yaml.Node
	}
	seen := map[string]bool{l.src.entry: true}
	for queue := []file{{path: l.src.entry}}; len(queue) > 0; queue = queue[1:] {
		f := queue[0]
		t, err := l.read(f.path)
		switch {
		case err != nil && f.importer == nil:
			return err
		case err != nil:
			f.importer.unread(f.at, f.path, err)
			continue
		}
		l.templates = append(l.templates, t)
		for _, n := range t.root.list("imports") {
			p, ok := t.imported(n)
			if !ok || seen[p] {
				continue
			}
			if len(seen) == maxFiles {
				t.note(n, "imports", "", "%s is not read: a descriptor has more than %d files", parse.Quote(p), maxFiles)
				continue
			}
			seen[p] = true
			queue = append(queue, file{p, t.scope, n})
		}
	}
	return nil
}

// unread notes an import that could not be read. The types of SOL001 are known without
// their files.
func (s *scope) unread(at *yaml.Node, name string, err error) {
	if errors.Is(err, fs.ErrNotExist) && isTypesFile(name) {
		return
	}
	var fault parse.Errors
	if errors.As(err, &fault) {
		at, err = parse.Deref(at), fault[0]
	}
	s.note(at, "imports", "", "%s is not read: %v", parse.Quote(name), err)
}

// isTypesFile reports whether a file is one of ETSI's, or a copy.
func isTypesFile(name string) bool {
	return strings.HasPrefix(path.Base(name), "etsi_nfv_sol001_")
}

// read parses one file and its type definitions.
func (l *loader) read(name string) (*template, error) {
	data, err := l.src.read(name, parse.MaxSize)
	if err != nil {
		return nil, err
	}
	if l.bytes += len(data); l.bytes > maxBytes {
		return nil, fmt.Errorf("a descriptor and its imports have at most %d bytes", maxBytes)
	}
	file := l.src.label(name)
	l.notes.file(file)
	root, fault := parse.Tree(file, data)
	if fault != nil {
		fault.Fix = cmp.Or(fault.Fix, nameOne) // of an empty file
		return nil, parse.Errors{fault}
	}
	t := &template{scope: &scope{file: file, notes: l.notes, known: map[*yaml.Node]*object{}}, path: name}
	if root.Kind != yaml.MappingNode {
		return nil, parse.Errors{{Pos: t.position(root), Text: "this is no service template of TOSCA", Fix: nameOne}}
	}
	t.root = t.open(root, "")
	if t.root.values["tosca_definitions_version"] == nil {
		return nil, parse.Errors{{Pos: t.position(root), Text: "the file has no tosca_definitions_version, so it is no service template of TOSCA", Fix: nameOne}}
	}
	t.root.skip(declarations...)
	for _, section := range []string{"node_types", "policy_types"} {
		types := t.open(t.root.value(section), section)
		types.skip(fieldsOf(types)...)
		for _, key := range types.keys {
			def := t.open(types.values[key.Value], section)
			def.skip(fieldsOf(def)...)
			l.derived[key.Value] = def.text("derived_from")
			l.products[key.Value] = scalarOf(def.node, "properties", "product_name", "default")
		}
	}
	t.readTopology()
	return t, nil
}

func fieldsOf(o *object) []string {
	all := make([]string, len(o.keys))
	for i, key := range o.keys {
		all[i] = key.Value
	}
	return all
}

// readTopology finds the defaults of inputs, the node templates and the substitution.
func (t *template) readTopology() {
	t.topology = t.root.object("topology_template")
	t.topology.skip("description", "inputs")
	inputs := t.open(t.topology.values["inputs"], "inputs")
	inputs.skip(fieldsOf(inputs)...)
	defaults := map[string]*yaml.Node{}
	for _, key := range inputs.keys {
		input := t.open(inputs.values[key.Value], "inputs")
		input.skip(fieldsOf(input)...)
		if n := input.values["default"]; n != nil {
			defaults[key.Value] = n
		}
	}
	t.inputs = defaults
	t.nodes = t.topology.object("node_templates")
	s := t.topology.object("substitution_mappings")
	s.in = "substitution_mappings"
	t.substitutes = s.text("node_type")
	properties := s.object("properties")
	t.flavour = properties.text("flavour_id")
}

// imported is the path of an import in the source.
func (t *template) imported(n *yaml.Node) (string, bool) {
	at := n
	n = parse.Deref(n)
	if n.Kind == yaml.MappingNode { // {file: …} or {name: …}, the latter with a file or a mapping
		o := t.open(n, "imports")
		o.skip(fieldsOf(o)...)
		switch {
		case o.values["file"] != nil:
			n = parse.Deref(o.values["file"])
		case len(o.keys) == 1:
			return t.imported(o.values[o.keys[0].Value])
		}
	}
	switch name := n.Value; {
	case n.Kind != yaml.ScalarNode || name == "":
		t.note(at, "imports", "", "this import names no file")
	case strings.Contains(name, "://"):
		if !isTypesFile(name) {
			t.note(at, "imports", "put the file beside the descriptor", "%s is not read: imports come from files only", parse.Quote(name))
		}
	default:
		inside := path.Join(path.Dir(t.path), name)
		if path.IsAbs(name) || !fs.ValidPath(inside) {
			t.note(at, "imports", "name the folder that holds all files, with a TOSCA-Metadata/TOSCA.meta", "%s is not read: it is outside of the descriptor's folder", parse.Quote(name))
			return "", false
		}
		return inside, true
	}
	return "", false
}

// kind is the type of SOL001 that a type is or is derived from; "" if it is none.
func (l *loader) kind(name string) string {
	for range maxDerived {
		if i := strings.LastIndex(name, ":"); i >= 0 { // the prefix of an import's namespace
			name = name[i+1:]
		}
		if known[name] {
			return name
		}
		name = l.derived[name]
		if name == "" {
			break
		}
	}
	return ""
}
