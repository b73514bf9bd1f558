// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/spec/parse"
)

// MaxInstances is the most instances of a function. A claim in Kubernetes has room for 32
// ports, and the other ends of the links are ports of one function.
const MaxInstances = 32

// maxCopies bounds the instances of all functions and their ports: a chain with more would
// take more memory than its file suggests.
const maxCopies = 4096

// maxNameLen is the longest name of a function or a link, in bytes.
const maxNameLen = 32

// Numbered is the name of instance i of a function, of its link, and of the port at the
// other end of that link, by their names in the chain file.
func Numbered(name string, i int) string { return fmt.Sprintf("%s-%d", name, i) }

// Declared is the function's name in the chain file.
func (f Function) Declared() string { return cmp.Or(f.Of, f.Name) }

// instances turns each function with instances into that many functions.
type instances struct {
	*checker
	count map[string]int // by function
}

// expand replaces functions with instances, their links, and the ports at the other ends
// of these. It reports what cannot be repeated. The chain has no other fault.
func (k *checker) expand(c *Chain) {
	x, copies := instances{k, map[string]int{}}, 0
	for _, f := range c.Functions {
		if f.Instances == 0 {
			continue
		}
		x.count[f.Name] = f.Instances
		if copies += f.Instances * (1 + len(f.Ports)); copies > maxCopies {
			x.FailAt(f.FieldPos["instances"], "ask for fewer", "the instances of the chain and their ports are more than %d", maxCopies)
			return
		}
	}
	if len(x.count) == 0 {
		return
	}
	repeated := map[End]int{} // ports at the other ends
	var links []Link
	for i := range c.Links {
		links = append(links, x.link(&c.Links[i], repeated)...)
	}
	var functions []Function
	for i := range c.Functions {
		f := &c.Functions[i]
		x.repeatPorts(f, repeated)
		functions = append(functions, x.function(f)...)
	}
	c.Functions, c.Links = functions, links
	x.checkNames(c)
}

// link is a link for each instance of the function at one of its ends.
func (x *instances) link(l *Link, repeated map[End]int) []Link {
	at := slices.IndexFunc(l.Ends, func(e End) bool { return x.count[e.Function] > 0 })
	if at < 0 {
		return []Link{*l}
	}
	other := l.Ends[1-min(at, 1)]
	if len(l.Ends) != 2 || other.IsUplink() || x.count[other.Function] > 0 {
		x.FailAt(l.FieldPos["ends"], "join each to a port of a function without instances",
			"the function %s has instances, so its link joins two ports, and only one of them has instances", parse.Quote(l.Ends[at].Function))
		return nil
	}
	n := x.count[l.Ends[at].Function]
	repeated[End{Function: other.Function, Port: other.Port}] = n
	x.short(l.FieldPos["name"], l.Name, n, maxNameLen)
	all := make([]Link, n)
	for i := range all {
		all[i] = *l
		all[i].Name, all[i].Ends = Numbered(l.Name, i), slices.Clone(l.Ends)
		all[i].Ends[at].Function = Numbered(l.Ends[at].Function, i)
		all[i].Ends[1-at].Port = Numbered(other.Port, i)
	}
	return all
}

// repeatPorts replaces each port of a function that faces instances by one for each.
func (x *instances) repeatPorts(f *Function, repeated map[End]int) {
	var ports []Port
	for _, p := range f.Ports {
		n := repeated[End{Function: f.Name, Port: p.Name}]
		if n == 0 {
			ports = append(ports, p)
			continue
		}
		x.short(p.FieldPos["name"], p.Name, n, maxPortNameLen)
		x.noAddress(&p)
		for i := range n {
			copied := p
			copied.Name = Numbered(p.Name, i)
			ports = append(ports, copied)
		}
	}
	if len(ports) > maxPorts {
		x.FailAt(f.Pos, "spread the links over several functions", "with a port for each instance, the function %s has %d ports, more than %d",
			parse.Quote(f.Name), len(ports), maxPorts)
	}
	f.Ports = ports
}

// function is the instances of a function, or the function itself if it has none.
func (x *instances) function(f *Function) []Function {
	if f.Instances == 0 {
		return []Function{*f}
	}
	x.short(f.FieldPos["name"], f.Name, f.Instances, maxNameLen)
	if e := f.External; e != nil && e.Netns == "" {
		x.FailAt(f.FieldPos["external"], "name a network namespace: NETNS-0 is that of the first instance", "one process or container cannot be several instances")
	}
	for i := range f.Ports {
		x.noAddress(&f.Ports[i])
	}
	all := make([]Function, f.Instances)
	for i := range all {
		all[i] = *f
		all[i].Name, all[i].Of, all[i].Instances, all[i].Ports = Numbered(f.Name, i), f.Name, 0, slices.Clone(f.Ports)
		if f.External != nil {
			all[i].External = &External{Netns: Numbered(f.External.Netns, i)}
		}
	}
	return all
}

// noAddress refuses addresses that several ports would have.
func (x *instances) noAddress(p *Port) {
	for _, field := range []string{"ip", "mac"} {
		if at, named := p.FieldPos[field]; named {
			x.FailAt(at, "remove it: the planner gives each port one of its own", "several instances cannot share the %s of the port %s", field, parse.Quote(p.Name))
		}
	}
}

// short refuses a name that is too long with the number of the last instance.
func (x *instances) short(at parse.Position, name string, n, limit int) {
	if longest := Numbered(name, n-1); len(longest) > limit {
		x.FailAt(at, "shorten it", "%s with the number of an instance, %s, has more than %d characters", parse.Quote(name), parse.Quote(longest), limit)
	}
}

// checkNames finds a name in the chain file that is also one of an instance.
func (x *instances) checkNames(c *Chain) {
	const fix = "rename one of the two"
	functions, links := map[string]bool{}, map[string]bool{}
	for _, f := range c.Functions {
		if functions[f.Name] {
			x.FailAt(f.FieldPos["name"], fix, "with instances, two functions are called %s", parse.Quote(f.Name))
		}
		functions[f.Name] = true
		ports := map[string]bool{}
		for _, p := range f.Ports {
			if ports[p.Name] {
				x.FailAt(p.FieldPos["name"], fix, "with a port for each instance, two ports of %s are called %s", parse.Quote(f.Name), parse.Quote(p.Name))
			}
			ports[p.Name] = true
		}
	}
	for _, l := range c.Links {
		if links[l.Name] {
			x.FailAt(l.FieldPos["name"], fix, "with instances, two links are called %s", parse.Quote(l.Name))
		}
		links[l.Name] = true
	}
}
