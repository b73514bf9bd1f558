// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// planLink chooses the transport of one link and collects its evidence. Addresses are
// assigned later, over all links.
func (p *planner) planLink(l *chain.Link) {
	n := p.needsOf(l)
	p.checkLink(n)
	link := Link{
		Name:      l.Name,
		Rejected:  []Rejected{},
		Ends:      p.ends(l),
		MTU:       n.mtu,
		Traffic:   cmp.Or(l.Traffic, chain.TrafficUDP),
		Frame:     l.Frame,
		Load:      n.load,
		Slotted:   l.Slotted,
		Shape:     n.shape,
		Messages:  l.Messages,
		Evidence:  []Evidence{},
		Requires:  l.Requires,
		Isolation: l.Isolation,
	}
	if n.crosses() {
		link.Hosts, link.VNI = n.hosts, 1+slices.IndexFunc(p.chain.Links, func(o chain.Link) bool { return o.Name == l.Name })
	}
	var c choice
	if l.Transport == chain.TransportAuto {
		c = p.chooseAuto(n)
	} else {
		c = p.checkNamed(n)
	}
	p.checkQdiscs(n, cmp.Or(c.transport, p.inv.Transport(l.Transport)))
	link.Reason, link.Rejected = c.reason, append(link.Rejected, c.rejected...)
	if c.transport != nil {
		link.Transport = c.transport.Name
		setBackends(link.Ends, c.transport)
		setPortQueues(&link, n, c.transport)
		link.Forwarding = forwardingOf(l, c.transport)
		link.Evidence = append(link.Evidence, c.evidence...)
		p.warnOfChoice(n, c.transport)
	}
	p.plan.Links = append(p.plan.Links, link)
}

// forwardingOf is how the transport forwards on the link; empty if it has no choice.
func forwardingOf(l *chain.Link, t *inventory.Transport) chain.Forwarding {
	switch {
	case !t.Caps.Forwards:
		return ""
	case l.Forwarding != "":
		return l.Forwarding
	case len(l.Ends) > 2:
		return chain.ForwardingLearning
	}
	return chain.ForwardingDirect
}

func (p *planner) ends(l *chain.Link) []End {
	ends := []End{}
	for _, e := range l.Ends {
		if e.IsUplink() {
			ends = append(ends, End{Uplink: e.Uplink})
			continue
		}
		port := p.chain.Function(e.Function).Port(e.Port)
		ends = append(ends, End{
			Function: e.Function,
			Port:     e.Port,
			Face:     port.Face,
			IP:       port.IP,
			MAC:      port.MAC,
			MTU:      port.MTU,
			Queues:   port.Queues,
			Hold:     port.Hold,
			Shape:    completed(port.QoS),
		})
	}
	return ends
}

// setBackends sets the backend of ports that libdray opens, in an application or in a
// DPDK driver: memory if the transport makes no interfaces, otherwise one of its
// interfaces.
func setBackends(ends []End, t *inventory.Transport) {
	if !slices.Contains(t.Caps.Faces, string(chain.FaceNative)) {
		return
	}
	backend := BackendShm
	if slices.Contains(t.Caps.Faces, string(chain.FaceNetdev)) {
		backend = BackendNetdev
	}
	for i := range ends {
		if ends[i].Face == chain.FaceNative || ends[i].Face == chain.FaceDPDK {
			ends[i].Backend = backend
		}
	}
}

func (p *planner) warnOfChoice(n *needs, t *inventory.Transport) {
	for _, e := range n.ports {
		bounds := slices.Contains(t.Caps.Faces, string(chain.FaceNative)) && !slices.Contains(t.Caps.Faces, string(chain.FaceNetdev))
		if e.port.Hold != nil && !bounds {
			p.warn("link %s: hold of %s has no effect: %s copies the packets it receives", n.link.Name, e.end, t.Name)
		}
	}
	if t.Caps.Privileged {
		p.warn("link %s: %s gives the functions of its ports %s, as the policy allows", n.link.Name, t.Name, t.Caps.Privileges)
	}
	if n.distrusts(t) {
		p.warn("link %s: over %s, each end can crash the other and write to its memory; set isolation: slice if they trust each other, or use transport: shm or isolation: no-peer-memory",
			n.link.Name, t.Name)
	}
	if t.Untried() {
		p.warn("link %s: transport %s was %s", n.link.Name, t.Name, t.Reason)
	} else if t.Status == inventory.NeverRun {
		p.warn("link %s: transport %s has never been run on this host", n.link.Name, t.Name)
	}
	if len(n.ports) > 1 && n.sameFunction() && !n.anyBeside() && !t.Caps.SameNetns {
		p.warn("link %s: all its ports are in function %s, and the kernel delivers between a function's own addresses without using the link",
			n.link.Name, n.ports[0].end.Function)
	}
}

// choice is the transport of a link, nil if none is feasible, and the rejected ones
// with reasons.
type choice struct {
	transport *inventory.Transport
	reason    string
	rejected  []Rejected
	evidence  []Evidence
}

func (c *choice) reject(t *inventory.Transport, reason string) {
	c.rejected = append(c.rejected, Rejected{Transport: t.Name, Reason: reason})
}

// byRank lists the host's transports, fastest first; transports that auto never takes
// come last.
func (p *planner) byRank() []*inventory.Transport {
	var ts []*inventory.Transport
	for i := range p.inv.Transports {
		ts = append(ts, &p.inv.Transports[i])
	}
	slices.SortStableFunc(ts, func(a, b *inventory.Transport) int {
		if (a.Caps.Rank < 0) != (b.Caps.Rank < 0) {
			return cmp.Compare(b.Caps.Rank, a.Caps.Rank)
		}
		return cmp.Or(cmp.Compare(a.Caps.Rank, b.Caps.Rank), strings.Compare(a.Name, b.Name))
	})
	return ts
}

// chooseAuto takes the fastest transport that passes every filter and has evidence for
// every requirement. If there is none, it takes the fastest that passes the filters and
// reports the missing evidence.
func (p *planner) chooseAuto(n *needs) choice {
	var c choice
	var fastest *inventory.Transport
	for _, t := range p.byRank() {
		o, _ := firstObstacle(t, n)
		if o != nil || t.Caps.Rank < 0 || n.distrusts(t) {
			continue
		}
		fastest = cmp.Or(fastest, t)
		if evidence := p.evidence(t, n); firstUnmet(evidence) == nil {
			c.transport, c.evidence = t, evidence
			break
		}
	}
	switch {
	case fastest == nil:
		p.violateNearest(n)
	case c.transport == nil:
		c.transport, c.evidence = fastest, p.evidence(fastest, n)
		c.reason = fastestReason(n) + "; no transport has evidence for every requirement"
		p.violateUnmet(n, c.transport, c.evidence)
	case c.transport == fastest:
		c.reason = fastestReason(n)
	default:
		c.reason = "fastest with evidence for every requirement"
	}
	p.rejectOthers(n, &c)
	return c
}

// distrusts reports whether an end could harm the other over that transport, and the
// chain does not say that they trust each other.
func (n *needs) distrusts(t *inventory.Transport) bool {
	return t.Caps.Trust && n.link.Isolation != chain.IsolationSlice
}

func fastestReason(n *needs) string {
	var faces []string
	for _, e := range n.ports {
		if !slices.Contains(faces, string(e.port.Face)) {
			faces = append(faces, string(e.port.Face))
		}
	}
	where := "on one host"
	if n.crosses() {
		where = "between hosts"
	}
	return fmt.Sprintf("fastest that isolation %q and the face %s allow %s", n.link.Isolation, strings.Join(faces, ", "), where)
}

// rejectOthers states why auto did not take each other transport.
func (p *planner) rejectOthers(n *needs, c *choice) {
	for _, t := range p.byRank() {
		if t == c.transport {
			continue
		}
		o, _ := firstObstacle(t, n)
		switch {
		case t.Caps.VFs:
			c.reject(t, "uses virtual functions of a network card, which has few: used only if the chain names it")
		case t.Caps.Rank < 0:
			c.reject(t, "is a baseline, used only if the chain names it")
		case o != nil:
			c.reject(t, o.reason)
		case n.distrusts(t):
			c.reject(t, "is only for ends that trust each other: used if the chain names it or sets isolation: slice")
		default:
			unmet := firstUnmet(p.evidence(t, n))
			faster := c.transport != nil && t.Caps.Rank < c.transport.Caps.Rank
			if unmet != nil && (faster || firstUnmet(c.evidence) != nil) {
				c.reject(t, fmt.Sprintf("%s %s, and %s is expected (%s)", unmet.Requirement, unmet.Required, unmet.Expected, unmet.Source))
				continue
			}
			c.reject(t, "ranks behind "+c.transport.Name)
		}
	}
}

// violateNearest names the constraint that stopped the transport that passed most
// filters.
func (p *planner) violateNearest(n *needs) {
	v := Violation{
		Subject:    n.subject(),
		Constraint: "transport auto",
		Reason:     "this host has no transport that auto may choose",
		Fix:        "dray doctor shows what each transport lacks",
		Pos:        n.field("transport"),
		Hard:       true,
	}
	most := -1
	for _, t := range p.byRank() {
		o, passed := firstObstacle(t, n)
		near := passed*(len(n.ports)+1) + facesServed(t, n)
		if o == nil || t.Caps.Rank < 0 || near <= most {
			continue
		}
		most = near
		v.Constraint, v.Fix, v.Pos = o.constraint, o.fix, o.pos
		v.Reason = fmt.Sprintf("no transport can do this; the nearest is %s, which %s", t.Name, o.reason)
	}
	p.violate(v)
}

// facesServed counts the link's ports whose face the transport serves.
func facesServed(t *inventory.Transport, n *needs) int {
	served := 0
	for _, e := range n.ports {
		if n.serves(t, e) {
			served++
		}
	}
	return served
}

// checkNamed applies the same filters to the transport that the chain names.
func (p *planner) checkNamed(n *needs) choice {
	var c choice
	name := n.link.Transport
	for _, t := range p.byRank() {
		if t.Name != name {
			c.reject(t, "the chain names "+name)
		}
	}
	t := p.inv.Transport(name)
	if t == nil {
		p.violateUnknown(n)
		return c
	}
	if o, _ := firstObstacle(t, n); o != nil {
		p.violate(Violation{
			Subject:    n.subject(),
			Constraint: o.constraint,
			Reason:     name + " " + o.reason,
			Fix:        o.fix,
			Pos:        o.pos,
			Hard:       true,
		})
		c.reject(t, o.reason)
		return c
	}
	c.transport, c.reason, c.evidence = t, "named by the chain", p.evidence(t, n)
	p.violateUnmet(n, t, c.evidence)
	return c
}

func (p *planner) violateUnknown(n *needs) {
	var names []string
	for _, t := range p.byRank() {
		if t.Usable() {
			names = append(names, t.Name)
		}
	}
	p.violate(Violation{
		Subject:    n.subject(),
		Constraint: "transport " + n.link.Transport,
		Reason:     "there is no such transport",
		Fix:        "use auto, or one of: " + orNone(strings.Join(names, ", ")),
		Pos:        n.field("transport"),
		Hard:       true,
	})
}
