// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
)

// refusals collects what pods cannot have.
type refusals struct {
	file   string
	faults parse.Errors
}

func (r *refusals) add(at parse.Position, in, fix, format string, args ...any) {
	if at == (parse.Position{}) {
		at.File = r.file
	}
	r.faults = append(r.faults, &parse.Error{Pos: at, In: in, Fix: fix, Text: fmt.Sprintf(format, args...)})
}

// unsupported lists everything in a valid chain that pods cannot have; nil: nothing.
func unsupported(c *chain.Chain) parse.Errors {
	r := &refusals{file: c.File}
	if c.Hosts != nil {
		r.add(parse.Position{}, "", "remove hosts, and ask for a placement in the manifest: the nodes are those of the cluster", "a chain in Kubernetes has no simulated hosts")
	}
	if c.Policy.Privileged {
		r.add(parse.Position{}, "", "remove privileged", "no transport that pods can have needs privileges")
	}
	declared := Declared(c)
	r.most(parse.Position{}, "", "functions", len(declared), MaxFunctions)
	r.most(parse.Position{}, "", "links", declaredLinks(c), MaxLinks)
	r.most(parse.Position{}, "", "paths", len(c.Paths), MaxPaths)
	r.counts(c)
	joined := map[chain.End]bool{}
	for i := range c.Links {
		r.link(&c.Links[i], joined)
	}
	for _, instances := range declared {
		r.function(instances[0], joined)
	}
	slices.SortStableFunc(r.faults, func(a, b *parse.Error) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return r.faults
}

// link notes the ports that the link joins.
func (r *refusals) link(l *chain.Link, joined map[chain.End]bool) {
	in := "link " + l.Name
	r.most(l.Pos, in, "ends", len(l.Ends), MaxEnds)
	for _, e := range l.Ends {
		if e.IsUplink() {
			r.add(e.Pos, in, "name a port", "the link ends at %s, and pods have no host interface", e)
		}
		joined[chain.End{Function: e.Function, Port: e.Port}] = true
	}
}

func (r *refusals) function(f *chain.Function, joined map[chain.End]bool) {
	in := "function " + f.Declared()
	if f.Compute != nil {
		r.add(f.FieldPos["compute"], in, "remove compute: `dray run` judges it where all functions are on one host", "a pod gets no share of a CPU yet")
	}
	for _, p := range f.Ports {
		if !joined[chain.End{Function: f.Name, Port: p.Name}] {
			r.add(p.Pos, in, "add a link to it, or remove it", "the port %s is on no link", p.Name)
		}
	}
}

// declaredLinks counts the links of a chain as its file declares them.
func declaredLinks(c *chain.Chain) (n int) {
	again := map[string]bool{} // instances but the first
	for _, instances := range Declared(c) {
		for _, f := range instances[1:] {
			again[f.Name] = true
		}
	}
	for _, l := range c.Links {
		if !slices.ContainsFunc(l.Ends, func(e chain.End) bool { return again[e.Function] }) {
			n++
		}
	}
	return n
}

// counts checks limits that the schema of objects cannot: those of a chain with all its
// instances.
func (r *refusals) counts(c *chain.Chain) {
	r.most(parse.Position{}, "", "links, with those of all instances,", len(c.Links), MaxPlannedLinks)
	for _, instances := range Declared(c) {
		f, what := instances[0], "ports"
		if len(instances) > 1 {
			what = "ports of all instances"
		}
		r.most(f.Pos, "function "+f.Declared(), what, len(f.Ports)*len(instances), MaxPorts)
	}
}

func (r *refusals) most(at parse.Position, in, what string, n, limit int) {
	if n > limit {
		r.add(at, in, "split the chain", "%d %s are more than the limit of %d in Kubernetes", n, what, limit)
	}
}
