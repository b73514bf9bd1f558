// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
)

// Wrong is what is not as the chain says, with the reason of each.
type Wrong struct {
	Commands  map[string]string // by function: its command has ended, and is not started again
	Sandboxes map[string]string // by function: its network namespace is gone
	Ended     map[string]string // by function: it is external, and has ended
	Links     map[string]string // by link: a port is not in the kernel as it was made
}

// Wrong looks at what runs, and at the kernel. It is an error if that is not known of a function:
// what cannot be asked may be whole.
func (l *Live) Wrong(ctx context.Context) (Wrong, error) {
	w := Wrong{Commands: map[string]string{}, Sandboxes: map[string]string{}, Ended: map[string]string{}, Links: l.portFaults()}
	functions, _, err := l.Status()
	for _, st := range functions {
		if err == nil && (st.Phase == PhaseFailed || st.Phase == PhaseGone) {
			w.Commands[st.Name] = st.failure().Error()
		}
	}
	faults := l.Check(ctx)
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		var gone *runtime.GoneError
		switch fault := faults[name]; {
		case !errors.As(fault, &gone):
			return w, fmt.Errorf("whether function %s is as it was made cannot be asked: %w", name, fault)
		case gone.Ended:
			w.Ended[name] = fault.Error()
		default:
			w.Sandboxes[name] = fault.Error()
		}
	}
	return w, ctx.Err()
}

// portFaults compares the interfaces of the chain's ports with the kernel's, by link.
// Addresses and routes that a function has added are its own affair.
func (l *Live) portFaults() map[string]string {
	faults := map[string]string{}
	for _, link := range l.State.Plan.Links {
		var wrong []string
		for _, e := range link.Ends {
			if text := l.portFault(link, e); text != "" {
				wrong = append(wrong, fmt.Sprintf("port %s.%s %s", e.Function, e.Port, text))
			}
		}
		if len(wrong) > 0 {
			faults[link.Name] = strings.Join(wrong, ", ")
		}
	}
	return faults
}

// portFault says what of a port's interface is not as it was made; empty: nothing, or it
// is not known.
func (l *Live) portFault(link plan.Link, e plan.End) string {
	sandbox := l.State.Sandboxes[e.Function]
	if e.Uplink != "" || e.Face != chain.FaceNetdev || sandbox == nil || !sandbox.Netns.Exists() || !l.ownInterface(link, e) {
		return ""
	}
	now, err := sandbox.Netns.ReadLink(e.Port)
	switch {
	case host.LinkGone(err):
		return host.Absent
	case err != nil:
		return ""
	}
	fault := now.Differs(host.Iface{MAC: e.MAC.HardwareAddr(), MTU: cmp.Or(e.MTU, link.MTU)}, e.IP)
	switch {
	case fault != "":
		return fault
	case !now.Carrier && !slices.ContainsFunc(link.Ends, func(e plan.End) bool { return e.Uplink != "" }):
		return "has no carrier" // that of an uplink is the network's affair
	}
	return l.shapeFault(link, e, sandbox.Netns)
}

// shapeFault says that a port has lost the qdisc that shapes it; empty: it has none, or has it.
func (l *Live) shapeFault(link plan.Link, e plan.End, ns host.Netns) string {
	report := l.State.Reports[link.Name]
	if report == nil {
		return ""
	}
	for _, made := range report.Qdiscs {
		if made.End != e.Function+"."+e.Port {
			continue
		}
		switch now, err := ns.ReadQdisc(e.Port); {
		case err != nil:
		case now.Kind != made.Kind:
			return fmt.Sprintf("has the qdisc %s, not %s", now.Kind, made.Kind)
		case now.Text != made.Text:
			return "has other parameters of its qdisc " + made.Kind
		}
	}
	return ""
}

// ownInterface reports whether a port has an interface of its own, which this host makes.
func (l *Live) ownInterface(link plan.Link, e plan.End) bool {
	made, machine := l.hasInterface(link, e)
	return made && !machine
}

// hasInterface reports whether a port has an interface in its function's namespace, and
// whether that leads to a virtual machine. A switch that reaches a machine directly has a
// socket there instead.
func (l *Live) hasInterface(link plan.Link, e plan.End) (made, machine bool) {
	driver, err := l.node.driver(link.Transport)
	f := l.Chain.Function(e.Function)
	if err != nil || f == nil || driver.Caps().SameNetns {
		return false, false
	}
	rt, err := l.node.runtime(f.Runtime)
	_, machine = rt.(runtime.Booter)
	return err == nil && !(machine && driver.Caps().Machines), machine
}

// link is what is wrong with a link: one of its ports, or the function that had it.
func (w Wrong) link(l plan.Link) string {
	for _, e := range l.Ends {
		if why := w.Sandboxes[e.Function]; why != "" {
			return why
		}
	}
	return w.Links[l.Name]
}

// repairable is what is wrong and becomes as the chain says if c, planned as p, is applied. The
// rest it returns as changes that keep it: a change of anything else must not fail for it.
func (l *Live) repairable(c *chain.Chain, p *plan.Plan, wrong Wrong) (Wrong, []Change) {
	kept := []Change{}
	wrong.Sandboxes, wrong.Links, wrong.Commands = copied(wrong.Sandboxes), copied(wrong.Links), copied(wrong.Commands)
	for _, name := range slices.Sorted(maps.Keys(wrong.Ended)) {
		was, to := l.Chain.Function(name), c.Function(name)
		switch {
		case to == nil || was == nil:
		case len(differing(was.External, to.External)) > 0: // it runs elsewhere now
			wrong.Sandboxes[name] = wrong.Ended[name]
		default:
			kept = append(kept, Change{What: kindFunction, Name: name, Action: Keep, Why: wrong.Ended[name]})
		}
	}
	for again := true; again; { // a function that is kept may keep others
		again = false
		for _, pl := range l.State.Plan.Links {
			refused := l.checkLink(c, Change{}, pl, wrong).Refused
			if refused == "" || p.Link(pl.Name) == nil {
				continue
			}
			keep := func(what, name string, faults map[string]string) {
				if why := faults[name]; why != "" {
					kept = append(kept, Change{What: what, Name: name, Action: Keep, Why: why + "; it cannot be made again while the chain is up: " + refused})
					delete(faults, name)
					again = true
				}
			}
			keep(kindLink, pl.Name, wrong.Links)
			for _, e := range pl.Ends {
				if wrong.Sandboxes[e.Function] != "" {
					delete(wrong.Commands, e.Function) // it has no place to start in
				}
				keep(kindFunction, e.Function, wrong.Sandboxes)
			}
		}
	}
	return wrong, kept
}

func copied(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}
