// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"go.yaml.in/yaml/v3"
)

// Imported is the chain of a descriptor.
type Imported struct {
	Chain      string `json:"chain"`
	Descriptor string `json:"descriptor"`        // NSD or VNFD
	Flavour    string `json:"flavour,omitempty"` // the deployment flavour of a VNFD, if it is named
	LeftOut    []Note `json:"left_out"`
	YAML       string `json:"file"` // the chain file
}

// The types of SOL001 that the conversion tells apart.
const (
	typeCompute    = "tosca.nodes.nfv.Vdu.Compute"
	typeContainers = "tosca.nodes.nfv.Vdu.OsContainerDeployableUnit"
	typeContainer  = "tosca.nodes.nfv.Vdu.OsContainer"
	typeVduCp      = "tosca.nodes.nfv.VduCp"
	typeVnfExtCp   = "tosca.nodes.nfv.VnfExtCp"
	typeVnfVL      = "tosca.nodes.nfv.VnfVirtualLink"
	typeVNF        = "tosca.nodes.nfv.VNF"
	typePNF        = "tosca.nodes.nfv.PNF"
	typeNS         = "tosca.nodes.nfv.NS"
	typeNsVL       = "tosca.nodes.nfv.NsVirtualLink"
	typeSap        = "tosca.nodes.nfv.Sap"

	typeInitial     = "tosca.policies.nfv.VduInitialDelta"
	typeLevels      = "tosca.policies.nfv.InstantiationLevels"
	typeVduLevels   = "tosca.policies.nfv.VduInstantiationLevels"
	typeNsLevels    = "tosca.policies.nfv.NsInstantiationLevels"
	typeVnfToLevels = "tosca.policies.nfv.VnfToInstantiationLevelMapping"
)

// known are the types of SOL001 that the conversion knows.
var known = map[string]bool{
	typeCompute: true, typeContainers: true, typeContainer: true, typeVduCp: true, typeVnfExtCp: true, typeVnfVL: true,
	typeVNF: true, typePNF: true, typeNS: true, typeNsVL: true, typeSap: true,
	typeInitial: true, typeLevels: true, typeVduLevels: true, typeNsLevels: true, typeVnfToLevels: true,
}

// maxFunctions limits the functions of a chain, with all instances.
const maxFunctions = 4096

// refused begins the error for a chain that is beyond the limits of a chain file, such as
// the ports of a function.
const refused = "a chain file cannot express this descriptor"

// Import converts a descriptor. The flavour names a deployment flavour of a VNFD with
// several; "" is the one that the descriptor chooses.
func Import(src *Source, flavour string) (*Imported, error) {
	l := &loader{src: src, notes: &notes{}, derived: map[string]string{}, products: map[string]string{}}
	if err := l.load(); err != nil {
		return nil, err
	}
	t, kind, err := l.choose(flavour)
	if err != nil {
		return nil, err
	}
	d := &draft{loader: l, template: t, functionNames: newNames(longName), linkNames: newNames(longName),
		functions: map[string]*function{}, links: map[string]*link{}, ports: map[string]*port{}}
	if kind == kindNSD {
		d.network()
	} else {
		d.vnf()
	}
	d.policies()
	if n := d.instances(); n > maxFunctions {
		return nil, parse.Errors{{Pos: parse.Position{File: t.file}, Text: fmt.Sprintf("the descriptor makes %d functions, more than %d", n, maxFunctions),
			Fix: "convert its parts on their own"}}
	}
	d.finish()
	entry := l.templates[0]
	if t != entry {
		entry.rest()
	}
	t.rest()
	got := &Imported{Chain: d.name(), Descriptor: kind, Flavour: t.flavour}
	got.YAML, err = d.write(got)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", entry.file, err)
	}
	got.LeftOut = l.notes.sorted()
	if len(d.order) == 0 {
		return nil, append(parse.Errors{{Pos: parse.Position{File: t.file}, Text: "the descriptor has no VDU and no VNF, so it makes no chain", Fix: "name an NSD or VNFD with node_templates"}},
			causes(got.LeftOut)...)
	}
	if _, err := chain.Parse("the chain of "+entry.file, []byte(got.YAML)); err != nil {
		return nil, fmt.Errorf(refused+": %w", err)
	}
	return got, nil
}

// causes are the notes of what was not read, which may hold what a descriptor lacks.
func causes(all []Note) (errs parse.Errors) {
	for _, n := range all {
		if n.In == "imports" || n.Fix != "" {
			errs = append(errs, &parse.Error{Pos: parse.Position{File: n.File, Line: n.Line, Column: n.Column}, Text: n.Text, Fix: n.Fix})
		}
	}
	return errs
}

// has reports whether a template has a node of one of the types.
func (l *loader) has(t *template, kinds ...string) bool {
	return slices.ContainsFunc(t.nodes.keys, func(key *yaml.Node) bool {
		return slices.Contains(kinds, l.kind(typeOf(t.nodes.values[key.Value])))
	})
}

// choose finds the template to convert, and its kind. A VNFD with several deployment
// flavours has a template for each; the entry then only stands for the VNF.
func (l *loader) choose(flavour string) (*template, string, error) {
	entry := l.templates[0]
	isVNFD := func(t *template) bool { return l.has(t, typeCompute, typeContainers) }
	if isVNFD(entry) {
		return entry, kindVNFD, matches(entry, flavour)
	}
	if l.has(entry, typeNsVL, typeSap) {
		return entry, kindNSD, noFlavours(entry, flavour)
	}
	var flavours []*template
	for _, t := range l.templates[1:] {
		if isVNFD(t) && (t.substitutes != "" || len(entry.nodes.keys) == 0) {
			flavours = append(flavours, t)
		}
	}
	if len(flavours) == 0 || l.has(entry, typeNS) {
		return entry, kindNSD, noFlavours(entry, flavour)
	}
	if flavour == "" {
		flavour = l.ownFlavour(entry)
	}
	var all []string
	for _, t := range flavours {
		if t.flavourName() == flavour || len(flavours) == 1 && flavour == "" {
			return t, kindVNFD, nil
		}
		all = append(all, t.flavourName())
	}
	fix := "choose one with --flavour: " + parse.Either(all)
	if flavour != "" {
		return nil, "", parse.Errors{{Pos: parse.Position{File: entry.file}, Text: "there is no deployment flavour " + parse.Quote(flavour), Fix: fix}}
	}
	return nil, "", parse.Errors{{Pos: parse.Position{File: entry.file}, Text: "the VNF has several deployment flavours", Fix: fix}}
}

// flavourName is the id of a template's deployment flavour, or its file's name.
func (t *template) flavourName() string {
	return cmp.Or(t.flavour, strings.TrimSuffix(path.Base(t.path), path.Ext(t.path)))
}

// ownFlavour is the flavour that the VNF in the entry names itself.
func (l *loader) ownFlavour(entry *template) string {
	for _, key := range entry.nodes.keys {
		n := entry.nodes.values[key.Value]
		if l.kind(typeOf(n)) != typeVNF {
			continue
		}
		if id := scalarOf(n, "properties", "flavour_id"); id != "" {
			return id
		}
	}
	return ""
}

// matches is an error if a flavour is asked for that the only template does not have.
func matches(t *template, flavour string) error {
	if flavour == "" || flavour == t.flavourName() {
		return nil
	}
	return parse.Errors{{Pos: parse.Position{File: t.file}, Text: "there is no deployment flavour " + parse.Quote(flavour),
		Fix: "leave out --flavour: the descriptor has only one"}}
}

func noFlavours(t *template, flavour string) error {
	if flavour == "" {
		return nil
	}
	return parse.Errors{{Pos: parse.Position{File: t.file}, Text: "an NSD has no deployment flavours", Fix: "leave out --flavour"}}
}
