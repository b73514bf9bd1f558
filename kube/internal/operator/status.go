// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: clip(message, maxMessage)}
}

// maxMessage is the longest message of a condition, in bytes.
const maxMessage = 32768

// statusOf is the chain's status. Conditions that stay as they are keep their time.
func statusOf(c *v1alpha1.Chain, d decision, seen map[portKey]port, given instances) v1alpha1.ChainStatus {
	s := v1alpha1.ChainStatus{ObservedGeneration: c.Generation, Conditions: slices.Clone(c.Status.Conditions), Instances: given.all, Placement: d.spots}
	var waiting []string
	reason := v1alpha1.ReasonChanged // unless something else is wrong
	if d.plan != nil {
		idle, links := given.idle(d.chain), 0
		for _, l := range d.plan.Links {
			if isIdle(l, idle) {
				s.Links = append(s.Links, idleLink(l, seen))
				continue
			}
			link, why, changed := linkStatus(c, l, d, seen)
			s.Links = append(s.Links, link)
			if links++; why == "" {
				continue
			}
			waiting = append(waiting, "link "+l.Name+": "+why)
			if !changed {
				reason = v1alpha1.ReasonWaiting
			}
		}
		if len(given.waiting) > 0 {
			reason = v1alpha1.ReasonWaiting
		}
		s.Ready = fmt.Sprintf("%d/%d", links-len(waiting), links)
		waiting = append(waiting, given.waiting...)
		for _, p := range d.plan.Paths {
			s.Paths = append(s.Paths, pathStatus(c, p))
		}
	}
	s.Verdict = verdicts(requirements(s))
	for _, one := range []metav1.Condition{d.planned, readiness(d, reason, waiting), met(d, requirements(s))} {
		one.ObservedGeneration = c.Generation
		meta.SetStatusCondition(&s.Conditions, one)
	}
	return s
}

func sameStatus(a, b v1alpha1.ChainStatus) bool { return equality.Semantic.DeepEqual(a, b) }

// isIdle reports whether a link has an end at one of the idle instances.
func isIdle(l plan.Link, idle map[string]bool) bool {
	return slices.ContainsFunc(l.Ends, func(e plan.End) bool { return idle[e.Function] })
}

// idleLink is the status of a link of an instance that no pod has.
func idleLink(l plan.Link, seen map[portKey]port) v1alpha1.LinkStatus {
	return v1alpha1.LinkStatus{Name: l.Name, Transport: l.Transport, Ends: ends(l, seen), Idle: true}
}

// ends are where the ends of a link are.
func ends(l plan.Link, seen map[portKey]port) (all []v1alpha1.EndStatus) {
	for _, e := range l.Ends {
		p := seen[portKey{e.Function, e.Port}]
		all = append(all, v1alpha1.EndStatus{Function: e.Function, Port: e.Port, Pod: p.pod, Node: p.node, Transport: p.data.Transport, Tunnel: p.data.Tunnel})
	}
	return all
}

// linkStatus is the status of a link, what it waits for, and whether that is only that somebody
// undoes a change.
func linkStatus(c *v1alpha1.Chain, l plan.Link, d decision, seen map[portKey]port) (link v1alpha1.LinkStatus, why string, changed bool) {
	link = v1alpha1.LinkStatus{Name: l.Name, Transport: l.Transport, Ends: ends(l, seen)}
	if other := d.across.Link(l.Name); other != nil && len(nodesOf(l, seen)) > 1 {
		link.Transport = other.Transport
	}
	old := v1alpha1.LinkStatus{}
	if i := slices.IndexFunc(c.Status.Links, func(old v1alpha1.LinkStatus) bool { return old.Name == l.Name }); i >= 0 {
		old = c.Status.Links[i]
	}
	link.Limits = limitsOf(c, l, old.Limits)
	if link.Local = l.Transport; !canMove(l, d.nodes, seen) {
		link.Local = old.Local
	}
	for _, e := range l.Evidence {
		if was := meta.FindStatusCondition(old.Requirements, e.Requirement); was != nil {
			link.Requirements = append(link.Requirements, *was)
		}
		one := judged(e, l, link.Limits, seen)
		one.ObservedGeneration = c.Generation
		meta.SetStatusCondition(&link.Requirements, one)
	}
	why, changed = missing(l, d.across, seen)
	return link, why, changed
}

// canMove reports whether every pod of a link can have it as it is planned.
func canMove(l plan.Link, nodes []string, seen map[portKey]port) bool {
	return !slices.ContainsFunc(l.Ends, func(e plan.End) bool {
		p := seen[portKey{e.Function, e.Port}]
		return p.stale || p.node != "" && !slices.Contains(nodes, p.node)
	})
}

// limitsOf are what is required of a link now. The same limits keep their generation.
func limitsOf(c *v1alpha1.Chain, l plan.Link, old *v1alpha1.Limits) *v1alpha1.Limits {
	text, err := json.Marshal(fleet.Bare(l).Limits())
	if err != nil {
		panic("limits of a link: " + err.Error()) // they hold only text and numbers
	}
	if old != nil && old.Text == string(text) {
		return old
	}
	return &v1alpha1.Limits{Generation: c.Generation, Text: string(text)}
}

// nodesOf are the nodes that have an end of a link.
func nodesOf(l plan.Link, seen map[portKey]port) (nodes []string) {
	for _, e := range l.Ends {
		if node := seen[portKey{e.Function, e.Port}].node; node != "" && !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// missing is why a link is not up, "" if it is, and whether only ports that somebody has changed
// are in the way.
func missing(l plan.Link, apart fleet.Across, seen map[portKey]port) (why string, changed bool) {
	nodes := nodesOf(l, seen)
	changes := 0
	var without, unprepared []string
	for _, e := range l.Ends {
		p := seen[portKey{e.Function, e.Port}]
		switch {
		case p.pod == "":
			without = append(without, e.String())
			continue
		case p.node == "":
			unprepared = append(unprepared, fmt.Sprintf("the pod %s is not on a node", p.pod))
			continue
		case p.stale:
			unprepared = append(unprepared, fmt.Sprintf("the pod %s has its ports by an earlier plan: replace the pod", p.pod))
		case !p.ready():
			unprepared = append(unprepared, notReady(p, e.String()))
			if p.changed() {
				changes++
			}
		case len(nodes) > 1 && p.tied:
			unprepared = append(unprepared, fmt.Sprintf("the pod %s has its ports from before the link could cross nodes: replace the pod", p.pod))
		case len(nodes) > 1 && p.data.Tunnel == nil:
			unprepared = append(unprepared, fmt.Sprintf("the node %s has no tunnel for %s yet", p.node, e))
		case len(nodes) > 1 && !sends(p, otherEnd(l, e, seen)):
			unprepared = append(unprepared, fmt.Sprintf("the node %s does not send from %s to the other node yet", p.node, e))
		case p.lags(l, nodes):
			unprepared = append(unprepared, fmt.Sprintf("the node %s still has %s on %s, not on %s", p.node, e, p.transport(), l.Transport))
		}
	}
	switch {
	case len(nodes) > 1 && apart.Link(l.Name) == nil:
		return fmt.Sprintf("its ends are on different nodes (%s), and it cannot cross: %s; or keep its pods on one node by podAffinity",
			strings.Join(nodes, ", "), apart.Why[l.Name]), false
	case len(without) > 0:
		return "no pod has " + strings.Join(without, ", "), false
	}
	return strings.Join(unprepared, "; "), changes > 0 && changes == len(unprepared)
}

// otherEnd is what is known of the port at the other end of a link.
func otherEnd(l plan.Link, own plan.End, seen map[portKey]port) port {
	i := slices.IndexFunc(l.Ends, func(e plan.End) bool { return e.String() != own.String() })
	return seen[portKey{l.Ends[i].Function, l.Ends[i].Port}]
}

// sends reports whether the node of a port sends to where the node of the other one receives. If that is not known,
// the other end is not ready either.
func sends(p, other port) bool {
	return other.data.Tunnel == nil || p.data.Peer != nil && *p.data.Peer == *other.data.Tunnel
}

// changed reports whether a port is not ready because somebody has changed it.
func (p port) changed() bool {
	ready := meta.FindStatusCondition(p.conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonChanged
}

func notReady(p port, end string) string {
	if ready := meta.FindStatusCondition(p.conditions, v1alpha1.ConditionReady); ready != nil {
		return end + ": " + ready.Message
	}
	return fmt.Sprintf("the node %s has not prepared %s", p.node, end)
}

// readiness is the condition Ready of a chain; reason is why it waits.
func readiness(d decision, reason string, waiting []string) metav1.Condition {
	switch {
	case d.plan == nil:
		return condition(v1alpha1.ConditionReady, metav1.ConditionFalse, d.planned.Reason, "the chain is not planned")
	case len(waiting) > 0:
		return condition(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, strings.Join(waiting, "; "))
	}
	return condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "every link has its pods")
}

// clip shortens text to at most so many bytes, at the end of a character.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}
