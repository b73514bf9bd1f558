// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/spec/parse"
)

// checkPaths finds the links of each path.
func (k *checker) checkPaths(c *Chain) {
	for i := range c.Paths {
		p := &c.Paths[i]
		if slices.ContainsFunc(c.Links, func(l Link) bool { return l.Name == p.Name && p.Name != "" }) {
			k.FailAt(p.FieldPos["name"], "rename one of the two: reports name both alike", "a link is named %s too", parse.Quote(p.Name))
		}
		k.route(c, p)
		k.checkGTPU(p)
	}
}

// route finds the links from a path's first port to its last. So far its steps name the
// functions at which packets arrive.
func (k *checker) route(c *Chain, p *Path) {
	out, to := k.pathEnd(c, p.From), k.pathEnd(c, p.To)
	if out == nil || to == nil || !k.checkHops(c, p) {
		return
	}
	for i, s := range p.Steps {
		step, ok := k.step(c, out, s.In)
		if !ok {
			return
		}
		p.Steps[i] = step
		out = &member{function: c.Function(s.In.Function)}
	}
}

// pathEnd is the port of a path's end; nil: it is reported.
func (k *checker) pathEnd(c *Chain, e End) *member {
	m := k.ports[End{Function: e.Function, Port: e.Port}]
	switch {
	case e.Port == "": // reported by the decoder
	case m == nil:
		k.dangling(c, e)
	case m.link == nil:
		k.FailAt(e.Pos, "name a port of a link", "the port %s is on no link", e)
	case m.function.Instances > 0:
		k.instanceOnPath(e.Pos, m.function.Name)
	default:
		return m
	}
	return nil
}

func (k *checker) instanceOnPath(at parse.Position, function string) {
	k.FailAt(at, "leave the function's instances out, or the path", "the function %s has instances, and a path passes one function after the other", parse.Quote(function))
}

// checkHops reports functions that do not exist, or that the path passes twice.
func (k *checker) checkHops(c *Chain, p *Path) bool {
	seen := map[string]bool{p.From.Function: true}
	for _, s := range p.Steps {
		in, f := s.In, c.Function(s.In.Function)
		switch {
		case f == nil:
			k.FailAt(in.Pos, knownFunction(in.Function, c), "there is no function %s", parse.Quote(in.Function))
			return false
		case seen[in.Function]:
			k.FailAt(in.Pos, "name each function once", "the path passes the function %s twice", parse.Quote(in.Function))
			return false
		case f.Instances > 0:
			k.instanceOnPath(in.Pos, in.Function)
			return false
		case in.Port != "" && f.Port(in.Port) == nil:
			k.dangling(c, in)
			return false
		}
		seen[in.Function] = true
	}
	return true
}

func knownFunction(name string, c *Chain) string {
	var names []string
	for _, f := range c.Functions {
		names = append(names, f.Name)
	}
	return fmt.Sprintf("the nearest function is %q", parse.Nearest(name, names))
}

// step is the one link from a function, or from one of its ports, to the next function.
func (k *checker) step(c *Chain, out *member, to End) (Step, bool) {
	var found []Step
	for i := range c.Links {
		found = append(found, steps(&c.Links[i], out, to)...)
	}
	switch len(found) {
	case 1:
		return found[0], true
	case 0:
		k.FailAt(to.Pos, "name the functions in the order in which packets pass them, each joined to the next by a link",
			"no link leads from %s to %s", parse.Quote(leaving(out)), parse.Quote(arriving(to)))
	default:
		k.FailAt(to.Pos, fmt.Sprintf("name the port at which packets arrive, such as %q", found[0].In), "several links lead from %s to %s: %s and %s",
			parse.Quote(leaving(out)), parse.Quote(arriving(to)), found[0].Link, found[1].Link)
	}
	return Step{}, false
}

// steps are the ways over a link from a function's ports to a port of the next function.
func steps(l *Link, out *member, to End) []Step {
	var all []Step
	for _, a := range l.Ends {
		if a.Function != out.function.Name || out.port != nil && a.Port != out.port.Name {
			continue
		}
		for _, b := range l.Ends {
			if b.Function == to.Function && (to.Port == "" || b.Port == to.Port) {
				all = append(all, Step{Link: l.Name, Out: a, In: b})
			}
		}
	}
	return all
}

func leaving(m *member) string {
	if m.port == nil {
		return m.function.Name
	}
	return m.String()
}

func arriving(e End) string {
	if e.Port == "" {
		return e.Function
	}
	return e.String()
}
