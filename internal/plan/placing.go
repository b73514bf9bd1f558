// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/drayage/dray/internal/plan/place"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/cpulist"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/units"
)

// placing puts the functions of a chain on its hosts with resources.
type placing struct {
	chain  *chain.Chain
	model  *place.Model
	links  []int // of the chain, by link of the model
	nodes  []numaNode
	at     []int // node of each function; nil: there is no placement
	proven bool  // no placement costs less
	routes [][]place.Route
}

// numaNode is a node of the model as the chain describes it.
type numaNode struct {
	host   string
	site   string
	index  int   // on the host
	of     int   // nodes on the host
	cpus   []int // nil: only counted
	listed bool  // the chain lists cpus; else they are numbered
}

// String is the node in the words of the chain: "h0", "NUMA node 1 of h0".
func (n numaNode) String() string {
	if n.of > 1 {
		return fmt.Sprintf("NUMA node %d of %s", n.index, n.host)
	}
	return n.host
}

// unlimited is the memory of a host that states none. Sums of it do not overflow.
const unlimited = 1 << 56

// chooseHosts finds a host for each function that names none, if the hosts have
// resources. The planner goes on with a chain in which every function names its host.
func (p *planner) chooseHosts() {
	h := p.chain.Hosts
	if h == nil || h.Machines == nil {
		return
	}
	p.on = p.newPlacing(p.chain)
	best, proven := place.Solve(p.on.model)
	if best == nil {
		p.violatePlacement(p.on, proven)
		p.on.model.Unmet = true
		best, proven = place.Solve(p.on.model)
	}
	if best == nil {
		return
	}
	p.on.at, p.on.proven = best.Node, proven
	p.plan.Placement = &Placement{Optimal: proven, Cost: best.Cost, Bound: best.Bound}
	placed := *p.chain
	placed.Functions = slices.Clone(p.chain.Functions)
	for f, node := range best.Node {
		placed.Functions[f].Host = p.on.nodes[node].host
	}
	p.chain = &placed
}

// newPlacing is the model of a chain.
func (p *planner) newPlacing(c *chain.Chain) *placing {
	s := &placing{chain: c, model: &place.Model{Hosts: len(c.Hosts.Names), Lines: lines(c.Hosts)}}
	s.addNodes()
	s.addFunctions()
	q := *p
	q.chain = c
	for i := range c.Links {
		if ends := s.ends(&c.Links[i]); len(ends) > 1 {
			s.links = append(s.links, i)
			s.model.Links = append(s.model.Links, q.linkWays(&c.Links[i], ends))
		}
	}
	for i := range c.Paths {
		s.model.Paths = append(s.model.Paths, place.Path{MaxDelay: cmp.Or(time.Duration(c.Paths[i].Requires.Latency), place.Unbounded)})
	}
	s.routes = s.model.Routes()
	return s
}

// lines are those between the hosts, or those from each host to the underlay's switch.
func lines(h *chain.Hosts) []place.Line {
	var all []place.Line
	points := slices.Clone(h.Names) // then switches
	point := func(name string) int {
		if !slices.Contains(points, name) {
			points = append(points, name)
		}
		return slices.Index(points, name)
	}
	for i, l := range h.Lines {
		ends := [2]int{point(l.Between[0]), point(l.Between[1])}
		all = append(all, place.Line{Ends: ends, Rate: uint64(l.Rate), Delay: l.OneWay(), Group: i})
	}
	if all != nil {
		return all
	}
	for i := range h.Names {
		half := time.Duration(h.Underlay.Delay) / 2 // it is whole microseconds
		all = append(all, place.Line{Ends: [2]int{i, len(h.Names)}, Rate: uint64(h.Underlay.Rate), Delay: half})
	}
	return all
}

func (s *placing) addNodes() {
	described := s.chain.Hosts.Lined()
	for h, m := range s.chain.Hosts.Machines {
		first := 0
		for i, n := range m.NUMA {
			node := numaNode{host: m.Name, site: m.Site, index: i, of: len(m.NUMA), cpus: n.CPUs.Set, listed: len(n.CPUs.Set) > 0}
			if described && !node.listed {
				for cpu := range n.CPUs.Count {
					node.cpus = append(node.cpus, first+cpu)
				}
				first += n.CPUs.Count
			}
			s.nodes = append(s.nodes, node)
			s.model.Nodes = append(s.model.Nodes, place.Node{Host: h, CPUs: n.CPUs.Number(), Memory: uint64(cmp.Or(n.Memory, unlimited))})
		}
	}
}

func (s *placing) addFunctions() {
	for i := range s.chain.Functions {
		f := &s.chain.Functions[i]
		fn := place.Function{CPUs: f.CPUs.Number(), Memory: uint64(max(f.Memory, f.MachineMemory()))}
		if f.Host != "" || len(f.CPUs.Set) > 0 {
			fn.Nodes = s.nodesFor(f)
		}
		for j := range i {
			if g := &s.chain.Functions[j]; len(intersect(f.CPUs.Set, g.CPUs.Set)) > 0 {
				fn.Against = append(fn.Against, j)
				s.model.Functions[j].Against = append(s.model.Functions[j].Against, i)
			}
		}
		s.model.Functions = append(s.model.Functions, fn)
	}
}

// nodesFor are the nodes on which a function may be by the host and the CPUs that it
// names.
func (s *placing) nodesFor(f *chain.Function) []int {
	nodes := []int{}
	for i, n := range s.nodes {
		fits := n.cpus == nil || len(intersect(f.CPUs.Set, n.cpus)) == len(f.CPUs.Set)
		if fits && (f.Host == "" || f.Host == n.host || f.Host == n.site) {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// ends are the functions of a link, each once.
func (s *placing) ends(l *chain.Link) []int {
	var ends []int
	for _, e := range l.Ends {
		f := slices.IndexFunc(s.chain.Functions, func(f chain.Function) bool { return f.Name == e.Function })
		if f >= 0 && !slices.Contains(ends, f) {
			ends = append(ends, f)
		}
	}
	return ends
}

// linkWays is a link of the model: what each transport leaves for lines.
func (p *planner) linkWays(l *chain.Link, ends []int) place.Link {
	link := place.Link{Ends: ends}
	all := []*needs{p.needsOf(l)} // of the link, then of its paths
	for i := range p.chain.Paths {
		if path := &p.chain.Paths[i]; path.Requires.Latency > 0 && path.Takes(l.Name) {
			link.Paths, all = append(link.Paths, i), append(all, p.needsOnPath(path, l))
		}
	}
	for _, n := range all {
		n.hosts, n.underlay = []string{"here"}, chain.Underlay{}
	}
	if local := p.ways(all[0], all[1:]); len(local) > 0 {
		best := max(0, slices.IndexFunc(local, func(w place.Way) bool { return !w.Never && w.MaxDelay >= 0 }))
		link.Local = &local[best]
	}
	for _, n := range all {
		n.hosts, n.underlay = []string{"here", "there"}, chain.Underlay{MTU: p.chain.Hosts.Underlay.MTU}
	}
	link.Apart = p.ways(all[0], all[1:])
	return link
}

// ways are the transports that auto may take for the link, or the one that it names,
// fastest first. paths are what its paths need of it.
func (p *planner) ways(n *needs, paths []*needs) []place.Way {
	var ways []place.Way
	for _, t := range p.candidates(n) {
		w := place.Way{Slow: slow(t), MaxDelay: math.MaxInt64}
		if limit := n.link.Requires.Latency; limit > 0 {
			e := p.estimate(t, n)
			f, why := e.queued(e.latency(float64(n.link.Requires.Percentile)))
			w.Never, w.MaxDelay = why != "", time.Duration(limit)-time.Duration(duration(math.Ceil(f.value)))
		}
		w.Never = w.Never || !p.carries(t, n, 0)
		if n.crosses() && !w.Never {
			w.MinRate = p.leastRate(t, n)
		}
		for _, path := range paths {
			w.Delays = append(w.Delays, cmp.Or(time.Duration(p.estimate(t, path).delay()), place.Unbounded))
		}
		ways = append(ways, w)
	}
	return ways
}

// candidates are the transports that can realise the link and may be chosen for it.
func (p *planner) candidates(n *needs) []*inventory.Transport {
	var all []*inventory.Transport
	for _, t := range p.byRank() {
		auto := n.link.Transport == chain.TransportAuto && t.Caps.Rank >= 0 && !n.distrusts(t)
		if o, _ := firstObstacle(t, n); o == nil && (auto || n.link.Transport == t.Name) {
			all = append(all, t)
		}
	}
	return all
}

// slow is the rank of a transport; auto takes none with a negative rank, so a link that
// names one has no choice.
func slow(t *inventory.Transport) int { return max(0, t.Caps.Rank) }

// carries reports whether the transport has evidence for every requirement but the
// latency itself, over a line of that rate; 0: without a limit.
func (p *planner) carries(t *inventory.Transport, n *needs, rate units.Bitrate) bool {
	n.underlay.Rate = rate
	defer func() { n.underlay.Rate = 0 }()
	return !slices.ContainsFunc(p.evidence(t, n), func(ev Evidence) bool {
		return !ev.Meets && (ev.Requirement != "latency" || ev.Expected == unknown)
	})
}

// leastRate is the lowest rate of a line with which the transport has evidence; 0: any.
func (p *planner) leastRate(t *inventory.Transport, n *needs) uint64 {
	if p.carries(t, n, 1) {
		return 0
	}
	low, high := units.Bitrate(1), units.Bitrate(2)
	for !p.carries(t, n, high) && high < 1<<60 {
		low, high = high, 2*high
	}
	for high-low > 1 {
		if mid := low + (high-low)/2; p.carries(t, n, mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return uint64(high)
}

// between is what joins hosts: the underlay, or the routes over lines, of which the
// longest delay and the lowest rate count.
func (p *planner) between(hosts []string) (chain.Underlay, string) {
	u := p.chain.Hosts.Underlay
	if !p.chain.Hosts.Lined() || p.on == nil {
		return u, "the underlay"
	}
	via := ""
	for i, a := range hosts {
		for _, b := range hosts[:i] {
			r := p.on.route(a, b)
			if r.Rate > 0 && (u.Rate == 0 || units.Bitrate(r.Rate) < u.Rate) {
				u.Rate = units.Bitrate(r.Rate)
			}
			if via == "" || units.Duration(r.Delay) > u.Delay {
				via = fmt.Sprintf("the lines from %s to %s", b, a)
			}
			u.Delay = max(u.Delay, units.Duration(r.Delay))
		}
	}
	return u, via
}

// route is that between two hosts. Without a placement, a function may have named a site
// instead, and the plan is refused in any case.
func (s *placing) route(a, b string) place.Route {
	names := s.chain.Hosts.Names
	from, to := slices.Index(names, a), slices.Index(names, b)
	if from < 0 || to < 0 {
		return place.Route{}
	}
	return s.routes[from][to]
}

// named are the CPUs of a function's node, if the chain lists them; nil: it does not.
func (s *placing) named(function string) []int {
	f := slices.IndexFunc(s.chain.Functions, func(f chain.Function) bool { return f.Name == function })
	if s.at == nil || !s.nodes[s.at[f]].listed {
		return nil
	}
	return s.nodes[s.at[f]].cpus
}

// cpus are those of the functions on hosts with lines, as these number them: the CPUs they
// name, and the first free ones of their nodes.
func (s *placing) cpus() map[string][]int {
	given := map[string][]int{}
	if s.at == nil {
		return given
	}
	taken := map[string][]int{} // by host
	for f, node := range s.at {
		if fn := &s.chain.Functions[f]; len(fn.CPUs.Set) > 0 {
			host := s.nodes[node].host
			given[fn.Name], taken[host] = slices.Clone(fn.CPUs.Set), append(taken[host], fn.CPUs.Set...)
		}
	}
	for f, node := range s.at {
		if fn, n := &s.chain.Functions[f], s.nodes[node]; fn.CPUs.Count > 0 {
			free := cpulist.Without(n.cpus, taken[n.host])[:fn.CPUs.Count]
			given[fn.Name], taken[n.host] = free, append(taken[n.host], free...)
		}
	}
	return given
}

// reason is why a function is where it is.
func (s *placing) reason(f *chain.Function) string {
	i := slices.IndexFunc(s.chain.Functions, func(g chain.Function) bool { return g.Name == f.Name })
	switch {
	case s.at == nil:
		return "no placement was found"
	case s.chain.Functions[i].Host != "":
		return "host named in the chain" + s.numaText(i)
	case s.proven:
		return "no other host costs less" + s.numaText(i)
	}
	return "the cheapest host found" + s.numaText(i)
}

// cpusText is the CPUs of a function on its host.
func (s *placing) cpusText(function string) string {
	cpus := s.cpus()[function]
	if len(cpus) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s there", cpusOf(cpus))
}

func (s *placing) numaText(f int) string {
	if n := s.nodes[s.at[f]]; n.of > 1 {
		return fmt.Sprintf("; NUMA node %d", n.index)
	}
	return ""
}
