// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/plan/place"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// violatePlacement reports the limits that cannot hold together, and the smallest changes
// of which each helps.
func (p *planner) violatePlacement(s *placing, proven bool) {
	effort := place.NewEffort()
	conflict := effort.Conflict(s.model)
	v := Violation{
		Subject:    "placement",
		Constraint: "hosts for all functions",
		Reason:     "no link between hosts, or on one, has a transport",
		Fix:        s.relaxations(p, effort),
		Hard:       !possible(s.model),
	}
	var others []string
	for i := len(conflict) - 1; i >= 0; i-- {
		text, pos := s.limitText(conflict[i])
		if i == len(conflict)-1 {
			v.Constraint, v.Pos = text, pos
			continue
		}
		others = append(others, text)
	}
	switch {
	case len(others) > 0:
		v.Reason = "it cannot hold together with " + parse.All(others)
	case len(conflict) > 0:
		v.Reason = "no placement has this"
	default:
		v.Fix = "do what the links' own violations say"
	}
	if !proven {
		v.Reason += "; the search is not exhaustive for so many functions and hosts"
	}
	p.violate(v)
}

// possible reports whether a placement exists if requirements may be unmet.
func possible(m *place.Model) bool {
	soft := *m
	soft.Unmet = true
	return place.Possible(&soft)
}

// limitText is a limit in the words of the chain, and its position there.
func (s *placing) limitText(l place.Limit) (string, parse.Position) {
	if l.Index < 0 {
		return map[place.Kind]string{
			place.KindPin: "the hosts and CPUs that functions name", place.KindCPUs: "the CPUs of the hosts", place.KindMemory: "the memory of the hosts",
			place.KindLink: "the requirements of links", place.KindPath: "the latencies of paths", place.KindRate: "the rates of lines",
		}[l.Kind], s.chain.Hosts.Pos
	}
	switch l.Kind {
	case place.KindPin:
		f := &s.chain.Functions[l.Index]
		if f.Host == "" {
			return "the CPUs that function " + f.Name + " names", at(f.FieldPos, "cpus", f.Pos)
		}
		return fmt.Sprintf("function %s on host %s", f.Name, f.Host), at(f.FieldPos, "host", f.Pos)
	case place.KindCPUs:
		return fmt.Sprintf("the %s of host %s", cpusText(s.sumCPUs(l.Index)), s.chain.Hosts.Names[l.Index]), s.chain.Hosts.Machines[l.Index].Pos
	case place.KindMemory:
		return "the memory of host " + s.chain.Hosts.Names[l.Index], s.chain.Hosts.Machines[l.Index].Pos
	case place.KindPath:
		path := &s.chain.Paths[l.Index]
		return fmt.Sprintf("latency ≤ %v at p%v of path %s", path.Requires.Latency, path.Requires.Percentile, path.Name), at(path.Requires.Pos, "latency", path.Pos)
	case place.KindRate:
		return "the rate of " + lineName(s.chain.Hosts, l.Index), s.chain.Hosts.Pos
	}
	link := &s.chain.Links[s.links[l.Index]]
	return s.requiresText(link), link.Pos
}

func (s *placing) sumCPUs(host int) int {
	sum := 0
	for _, n := range s.model.Nodes {
		if n.Host == host {
			sum += n.CPUs
		}
	}
	return sum
}

// requiresText is what can keep a link from hosts: its delay and rates.
func (s *placing) requiresText(l *chain.Link) string {
	r := l.Requires
	var parts []string
	if r.Latency > 0 {
		parts = append(parts, fmt.Sprintf("latency ≤ %v at p%v", r.Latency, r.Percentile))
	}
	if r.MinBitrate > 0 {
		parts = append(parts, fmt.Sprintf("min_bitrate ≥ %v", r.MinBitrate))
	}
	text := "the requirements of link " + l.Name
	if len(parts) > 0 {
		text = parse.All(parts) + " of link " + l.Name
	}
	if split := s.chain.SplitOf(l); split != "" {
		text += fmt.Sprintf(" (split %s)", split)
	}
	return text
}

// relaxations are the smallest changes that help, one of each kind.
func (s *placing) relaxations(p *planner, effort *place.Effort) string {
	if len(s.model.Functions) > place.ExactFunctions || s.model.Hosts > place.ExactHosts {
		return fmt.Sprintf("relax one of these; the smallest change is looked for up to %d functions on %d hosts", place.ExactFunctions, place.ExactHosts)
	}
	var texts []string
	all := effort.Relaxations(s.model)
	for _, r := range all {
		if r.Kind == place.KindDelay {
			texts = append(texts, s.relaxationText(r))
		}
	}
	if split := s.otherSplit(p, effort); split != "" {
		texts = append(texts, split)
	}
	for _, r := range all {
		if r.Kind != place.KindDelay {
			texts = append(texts, s.relaxationText(r))
		}
	}
	if load := s.lowerLoad(p, effort); load != "" {
		texts = append(texts, load)
	}
	switch {
	case len(texts) > 0:
	case effort.Spent():
		return "relax one of these; which change is the smallest would take too long to find"
	default:
		return "no single change of a host, line, split, load or latency helps: relax several, or lower bitrates or percentiles"
	}
	return strings.Join(texts, ", or ")
}

// otherSplit is the nearest split of one function that helps.
func (s *placing) otherSplit(p *planner, effort *place.Effort) string {
	for _, f := range s.chain.Functions {
		for _, split := range f.Split.Looser() {
			if other := p.newPlacing(s.chain.WithSplit(f.Name, split)); effort.Possible(other.model) {
				return fmt.Sprintf("split %s instead of %s for %s", split, f.Split, f.Name)
			}
		}
	}
	return ""
}

// lowerLoad is the first path or link whose load alone is too much.
func (s *placing) lowerLoad(p *planner, effort *place.Effort) string {
	for i, path := range s.chain.Paths {
		c := *s.chain
		c.Paths = slices.Clone(c.Paths)
		c.Paths[i].Load, c.Paths[i].HasLoad = 0, true
		if path.Load > 0 && effort.Possible(p.newPlacing(&c).model) {
			return "a lower load for path " + path.Name
		}
	}
	for i, link := range s.chain.Links {
		c := *s.chain
		c.Links = slices.Clone(c.Links)
		c.Links[i].Load, c.Links[i].HasLoad = 0, true
		if link.Load > 0 && effort.Possible(p.newPlacing(&c).model) {
			return "a lower load for link " + link.Name
		}
	}
	return ""
}

// relaxationText is what to change.
func (s *placing) relaxationText(r place.Relaxation) string {
	h := s.chain.Hosts
	switch r.Kind {
	case place.KindDelay:
		return s.delayText(r)
	case place.KindLink:
		l := &s.chain.Links[s.links[r.Index]]
		return fmt.Sprintf("a latency of %v for link %s", l.Requires.Latency+units.Duration(r.Amount), l.Name)
	case place.KindPath:
		path := &s.chain.Paths[r.Index]
		return fmt.Sprintf("a latency of %v for path %s", path.Requires.Latency+units.Duration(r.Amount), path.Name)
	case place.KindRate:
		return fmt.Sprintf("a rate of %v for %s", units.Bitrate(r.Amount), lineName(h, r.Index))
	case place.KindCPUs:
		return fmt.Sprintf("%s on %s", counted(int(r.Amount), "more CPU", "more CPUs"), s.nodes[r.Index])
	case place.KindMemory:
		return fmt.Sprintf("%v more memory on %s", units.Bytes(r.Amount), s.nodes[r.Index])
	}
	return unpinText(&s.chain.Functions[r.Index])
}

// unpinText is what else a function has to name.
func unpinText(f *chain.Function) string {
	switch {
	case f.Host == "":
		return "other CPUs for " + f.Name
	case len(f.CPUs.Set) == 0:
		return "another host for " + f.Name
	}
	return "another host or other CPUs for " + f.Name
}

// delayText is a shorter line or underlay, as the chain file can say it.
func (s *placing) delayText(r place.Relaxation) string {
	h, less := s.chain.Hosts, units.Duration(r.Amount)
	if h.Lined() {
		l := h.Lines[r.Index]
		return fmt.Sprintf("%s between %s and %s", shorterText(l, less), l.Between[0], l.Between[1])
	}
	// The way from host to host has two lines.
	if 2*less >= h.Underlay.Delay {
		return "no delay for the underlay"
	}
	return fmt.Sprintf("a delay of %v for the underlay", h.Underlay.Delay-2*less)
}

// shorterText is what takes so much from a line's delay: fibre in kilometres, if it is
// long enough, or else whole microseconds of the delay, as the field takes them.
func shorterText(l chain.HostLine, less units.Duration) string {
	const microsecond = 1000
	delay := (less + microsecond - 1) / microsecond * microsecond
	switch fibre := units.Length(less) / units.Length(chain.FibreDelay); {
	case time.Duration(less) >= l.OneWay():
		return "a line without delay or length"
	case fibre <= l.Length:
		return kilometres(fibre) + " less fibre"
	case delay < l.Delay:
		return fmt.Sprintf("%v less delay", delay)
	case delay == l.Delay:
		return "a line with length but no delay"
	}
	rest := units.Length(less-l.Delay) / units.Length(chain.FibreDelay)
	return fmt.Sprintf("no delay and %s less fibre", kilometres(rest))
}

func kilometres(l units.Length) string { return fmt.Sprintf("%.1f km", float64(l)/1000) }
