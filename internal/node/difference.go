// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
)

// Action is what applying a changed file does to a part of the chain.
type Action string

const (
	Add     Action = "add"
	Remove  Action = "remove"
	Restart Action = "restart" // a function's command is stopped and started
	Update  Action = "update"  // only what is recorded changes: no traffic and no command notices
	Replace Action = "replace" // a link is removed and made again; its ports are gone for a moment
	Move    Action = "move"    // a link between native ports gets another transport, or other queues, under traffic
	Keep    Action = "keep"    // it stays wrong: it cannot be made again while the chain is up
)

// Kinds of things that change.
const (
	kindFunction = "function"
	kindLink     = "link"
	kindPath     = "path"
	kindChain    = "chain"
)

// Change is one difference between a running chain and a changed file.
type Change struct {
	What    string   `json:"what"` // "function", "link", "path" or "chain"
	Name    string   `json:"name"`
	Action  Action   `json:"action,omitempty"` // none: it is refused
	Fields  []string `json:"fields,omitempty"` // of the file that differ
	Why     string   `json:"why,omitempty"`    // what is wrong with it, if the file does not differ
	Refused string   `json:"refused,omitempty"`
}

// commandFields affect only a function's command.
var commandFields = []string{"command", "env", "restart"}

// Pin fixes the addresses and transports of a changed chain's running links, and the
// CPUs of its running functions, so that planning keeps them. A link's transport is
// planned again if the file changes that or the isolation, or, with free, anything
// about the link.
func (l *Live) Pin(c *chain.Chain, free bool) {
	l.PinPlaces(c)
	for i := range c.Links {
		to := &c.Links[i]
		up, was := l.State.Plan.Link(to.Name), link(l.Chain, to.Name)
		if up == nil || was == nil {
			continue
		}
		if to.Transport == was.Transport && to.Isolation == was.Isolation && !(free && len(differing(*was, *to)) > 0) {
			to.Transport = up.Transport
		}
		for _, e := range up.Ends {
			p, q := port(c, e.Function, e.Port), port(l.Chain, e.Function, e.Port)
			if p == nil || q == nil {
				continue
			}
			if p.IP == q.IP {
				p.IP = e.IP
			}
			if p.MAC == q.MAC {
				p.MAC = e.MAC
			}
		}
	}
}

// PinPlaces names the hosts of running functions that name none, and the CPUs of those
// that ask for a number of them. On hosts with lines, CPUs are the hosts' own: HeldCPUs
// has those of this machine.
func (l *Live) PinPlaces(c *chain.Chain) {
	for i := range c.Functions {
		f := &c.Functions[i]
		was, placed := l.Chain.Function(f.Name), l.State.Plan.Function(f.Name)
		if was != nil && f.Host == "" {
			f.Host = was.Host
		}
		if was != nil && placed != nil && f.CPUs.Count > 0 && f.CPUs.Count == was.CPUs.Count && len(placed.CPUs) > 0 && !c.Hosts.Lined() {
			f.CPUs = chain.CPURequest{Set: placed.CPUs}
		}
	}
}

// HeldCPUs are the CPUs on which the links of a chain poll that stay in c, and those of its
// functions on hosts with lines. A link is not known to stay if c names another transport
// for it.
func (l *Live) HeldCPUs(c *chain.Chain) plan.Held {
	held := plan.Held{Links: map[string][]int{}, Functions: map[string][]int{}}
	for _, to := range c.Links {
		up := l.State.Plan.Link(to.Name)
		if up != nil && (to.Transport == up.Transport || to.Transport == chain.TransportAuto) {
			held.Links[to.Name] = up.CPUs
		}
	}
	for _, f := range c.Functions {
		was, placed := l.Chain.Function(f.Name), l.State.Plan.Function(f.Name)
		if c.Hosts.Lined() && was != nil && placed != nil && f.CPUs.Number() == was.CPUs.Number() {
			held.Functions[f.Name] = placed.CPUs
		}
	}
	return held
}

func link(c *chain.Chain, name string) *chain.Link {
	for i := range c.Links {
		if c.Links[i].Name == name {
			return &c.Links[i]
		}
	}
	return nil
}

func port(c *chain.Chain, function, name string) *chain.Port {
	f := c.Function(function)
	if f == nil {
		return nil
	}
	for i := range f.Ports {
		if f.Ports[i].Name == name {
			return &f.Ports[i]
		}
	}
	return nil
}

// Difference is the effect of applying a chain that may have changed, planned as p: also
// what is wrong becomes as the chain says. If any part is refused, the whole chain is.
func (l *Live) Difference(c *chain.Chain, p *plan.Plan, wrong Wrong) []Change {
	wrong, changes := l.repairable(c, p, wrong)
	if c.Hosts != nil || l.Chain.Hosts != nil {
		if fields := differing(c.Hosts, l.Chain.Hosts); len(fields) > 0 {
			changes = append(changes, Change{What: kindChain, Name: c.Name, Fields: []string{"hosts"}, Refused: "simulated hosts cannot change while the chain is up"})
		}
	}
	for _, f := range l.Chain.Functions {
		if c.Function(f.Name) == nil {
			changes = append(changes, Change{What: kindFunction, Name: f.Name, Action: Remove})
		}
	}
	for _, f := range c.Functions {
		if change := l.functionChange(f, p, wrong); change != nil {
			changes = append(changes, *change)
		}
	}
	for _, was := range l.State.Plan.Links {
		if p.Link(was.Name) == nil {
			changes = append(changes, l.checkLink(c, Change{What: kindLink, Name: was.Name, Action: Remove}, was, wrong))
		}
	}
	for _, to := range p.Links {
		if change := l.linkChange(c, to, wrong); change != nil {
			changes = append(changes, *change)
		}
	}
	return append(changes, l.pathChanges(c)...)
}

// pathChanges touch nothing that runs: a path is only measured.
func (l *Live) pathChanges(c *chain.Chain) []Change {
	var changes []Change
	for _, was := range l.Chain.Paths {
		if c.Path(was.Name) == nil {
			changes = append(changes, Change{What: kindPath, Name: was.Name, Action: Remove})
		}
	}
	for _, to := range c.Paths {
		was := l.Chain.Path(to.Name)
		if was == nil {
			changes = append(changes, Change{What: kindPath, Name: to.Name, Action: Add})
		} else if fields := differing(was, to); len(fields) > 0 {
			changes = append(changes, Change{What: kindPath, Name: to.Name, Action: Update, Fields: fields})
		}
	}
	return changes
}

func (l *Live) functionChange(f chain.Function, p *plan.Plan, wrong Wrong) *Change {
	was := l.Chain.Function(f.Name)
	if was == nil || l.State.Sandboxes[f.Name] == nil || wrong.Sandboxes[f.Name] != "" {
		return &Change{What: kindFunction, Name: f.Name, Action: Add, Why: wrong.Sandboxes[f.Name]}
	}
	change := &Change{What: kindFunction, Name: f.Name, Fields: differing(*was, f)}
	others := slices.DeleteFunc(slices.Clone(change.Fields), func(field string) bool {
		return slices.Contains(commandFields, field) || field == "ports"
	})
	placed, to := l.State.Plan.Function(f.Name), p.Function(f.Name)
	switch {
	case len(others) > 0:
		change.Refused = fmt.Sprintf("%s cannot change while the function is up", parse.All(others))
	case placed != nil && to != nil && !slices.Equal(placed.CPUs, to.CPUs):
		change.Refused = fmt.Sprintf("the plan would move it from CPUs %v to %v", placed.CPUs, to.CPUs)
	case !sameCommand(*was, f):
		change.Action = Restart
	case wrong.Commands[f.Name] != "":
		change.Action, change.Why = Restart, wrong.Commands[f.Name]
	case len(change.Fields) > 0:
		change.Action = Update
	default:
		return nil
	}
	return change
}

func (l *Live) linkChange(c *chain.Chain, to plan.Link, faults Wrong) *Change {
	was := l.State.Plan.Link(to.Name)
	if was == nil {
		change := l.checkLink(c, Change{What: kindLink, Name: to.Name, Action: Add}, to, faults)
		if hasBrokeredEnd(to) && !needsBroker(l.State.Plan) {
			change.Action, change.Refused = "", noBroker
		}
		return &change
	}
	wrong := faults.link(to)
	change := Change{What: kindLink, Name: to.Name, Fields: differing(link(l.Chain, to.Name), link(c, to.Name)), Why: wrong}
	moves := hasBrokeredEnd(*was) && len(differing(ports(*was), ports(to))) == 0 && slices.Equal(queueing(*was), queueing(to)) && checkMove(was, &to) == nil
	switch fields := differing(plumbing(*was), plumbing(to)); {
	case len(fields) == 0 && len(change.Fields) == 0 && wrong == "":
		return nil
	case len(fields) == 0 && wrong == "":
		change.Action = Update
	case moves && wrong == "":
		change.Action = Move
	default:
		change.Action = Replace
		if change = l.checkLink(c, change, *was, faults); change.Refused == "" {
			change = l.checkLink(c, change, to, faults)
		}
		if change.Refused == "" && hasBrokeredEnd(to) && !needsBroker(l.State.Plan) {
			change.Action, change.Refused = "", noBroker
		}
	}
	return &change
}

// noBroker is why a link cannot get native ports while its chain is up.
const noBroker = "it adds the chain's first native ports, and no broker is running to serve them"

// plumbing is a planned link without what it is judged by.
func plumbing(l plan.Link) plan.Link {
	l.Reason, l.Rejected, l.Load, l.Slotted, l.Evidence, l.Requires, l.Isolation, l.CPUs = "", nil, 0, chain.Slotted{}, nil, chain.Requires{}, "", nil
	return l
}

// ports is a link's plumbing without the transport and its dependents, and without qdiscs: a
// move changes only those.
func ports(l plan.Link) plan.Link {
	l = plumbing(l)
	l.Transport, l.Forwarding, l.Shape, l.Ends = "", "", nil, slices.Clone(l.Ends)
	for i := range l.Ends {
		l.Ends[i].Backend, l.Ends[i].Shape = "", nil
	}
	return l
}

// queueing reports which ends of a link queue what they send in user space. A port begins
// or ends to do so only when it is opened.
func queueing(l plan.Link) []bool {
	var ends []bool
	for _, e := range l.Ends {
		ends = append(ends, e.Backend == plan.BackendShm && cmp.Or(e.Shape, l.Shape) != nil)
	}
	return ends
}

// checkLink refuses a link change that adds or removes a port of a function that
// stays, if the function must restart for it.
func (l *Live) checkLink(c *chain.Chain, change Change, pl plan.Link, wrong Wrong) Change {
	for _, e := range pl.Ends {
		f := c.Function(e.Function)
		stays := f != nil && l.State.Sandboxes[e.Function] != nil && wrong.Sandboxes[e.Function] == ""
		switch {
		case pl.Tunnel():
			change.Refused = "it joins simulated hosts"
		case stays && e.Face != chain.FaceNetdev:
			change.Refused = fmt.Sprintf("function %s has opened its %s port %s when it started", e.Function, e.Face, e.Port)
		case stays && f.Runtime == chain.RuntimeVM:
			change.Refused = fmt.Sprintf("the virtual machine of function %s got its ports when it booted", e.Function)
		}
	}
	if change.Refused != "" {
		change.Action = ""
	}
	return change
}

// differing are the fields in which two objects differ, by JSON name.
func differing(a, b any) []string {
	one, other := object(a), object(b)
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(one)) {
		if !bytes.Equal(one[name], other[name]) {
			fields = append(fields, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(other)) {
		if one[name] == nil {
			fields = append(fields, name)
		}
	}
	return fields
}

// object is the fields of a value as JSON; empty if it has no JSON.
func object(v any) map[string]json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(text, &fields) != nil {
		return nil
	}
	return fields
}
