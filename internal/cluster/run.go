// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/measure/chainrun"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/manifest"
)

// Run keeps an active verification in a directory, as `dray verify` does on one host. A nil Run keeps
// nothing.
type Run struct {
	Path  string
	spec  []byte // of the chain
	state *report.Run
	dir   *chainrun.Directory // nil: nothing written yet
	as    *Chain              // the running copy, once there is a directory
	left  []verdict.Verdict   // on paths that could not be measured
}

// NewRun is a run that has not begun, for an empty directory.
func NewRun(path string, c *Chain, o verify.Options, by report.Program) *Run {
	return &Run{Path: path, spec: c.Spec, state: chainrun.NewState(c.Metadata.Name, o, by)}
}

// Phase times a part of the run.
func (r *Run) Phase(name string, f func() error) error {
	if r == nil {
		return f()
	}
	return chainrun.Phase(r.state, name, f)
}

// Begun reports whether the run has a directory with records.
func (r *Run) Begun() bool { return r != nil && r.dir != nil }

// sink takes records once the run has begun; nil: nothing keeps them.
func (r *Run) sink() runner.Sink {
	if !r.Begun() {
		return nil
	}
	return r.dir.Sink
}

// copied notes the pods of a copy that ran the programs of the chain's own.
func (r *Run) copied(as *Chain, g *PathGroup) {
	if !r.Begun() {
		return
	}
	for _, function := range slices.Sorted(maps.Keys(g.specs)) {
		at := as.anEnd(function)
		r.state.Cluster.Copied = append(r.state.Cluster.Copied, fmt.Sprintf("%s on %s", at.Pod, at.Node))
	}
}

// Leave notes the verdicts on paths that could not be measured, with the reasons that records cannot show.
func (r *Run) Leave(left []verdict.Verdict) {
	if r != nil {
		r.left = append(r.left, left...)
	}
}

// id names the run in its records.
func (r *Run) id(s *StandIn) string {
	if r == nil {
		return s.Of
	}
	return r.state.ID
}

// begin writes what is known before the first trial. The sink takes the records.
func (r *Run) begin(p *plan.Plan, as *Chain, where *report.RunCluster) (runner.Sink, error) {
	if r == nil {
		return nil, nil
	}
	text, err := manifest.Text(r.state.Chain, r.spec)
	if err != nil {
		return nil, fmt.Errorf("the chain's spec: %w", err)
	}
	r.state.Cluster, r.state.Functions, r.state.Links = where, []report.Function{}, linkRows(p)
	if r.dir, err = chainrun.Create(r.Path, r.state, []byte(text), map[string]any{report.PlanFile: p}); err != nil {
		return nil, err
	}
	r.as = as
	return r.dir.Sink, nil
}

// Finish ends a run that has begun, and returns what the directory holds. now is the chain itself, of which the
// nodes judge what measured cannot show; nil: that is not known.
func (r *Run) Finish(now *Chain, measured []verdict.Verdict, code int, interrupted bool) (*report.Data, error) {
	if now != nil {
		kind, err := now.kinds()
		if err != nil {
			return nil, err
		}
		for i := range r.state.Cluster.Links {
			l := &r.state.Cluster.Links[i]
			l.Verdicts = append(l.Verdicts, now.seen(r.as.Link(l.Name), kind, measured)...)
		}
	}
	r.state.Cluster.Unmeasured = r.left
	data, err := chainrun.Finish(r.dir, code, interrupted)
	r.Path = r.dir.Path
	return data, err
}

// seen are the verdicts of the nodes that take the place of those on a link of a copy.
func (c *Chain) seen(copied Link, kind func(Link) string, measured []verdict.Verdict) (all []verdict.Verdict) {
	i := slices.IndexFunc(c.Status.Links, func(l Link) bool { return l.Runs() && kind(l) == kind(copied) })
	if i < 0 {
		return nil
	}
	for _, q := range c.Status.Links[i].seen(verdictsOn(copied.Name, measured)) {
		all = append(all, q.Verdict(copied.Name))
	}
	return all
}

// Rescued says that somebody has removed the directory, and where its files are now; nil: nobody has.
func (r *Run) Rescued() error { return r.dir.Rescued }

// Close unlocks the directory. Without records, there is none.
func (r *Run) Close() error {
	switch {
	case r == nil:
		return nil
	case r.dir == nil:
		return os.Remove(r.Path)
	}
	return r.dir.Close()
}

// where describes where a running copy is.
func (k *Kubectl) where(ctx context.Context, s *StandIn, as *Chain, nodes []fleet.Node) *report.RunCluster {
	w := &report.RunCluster{Context: k.Context(ctx), Namespace: s.Namespace, Copy: s.Chain, Image: s.Image, Links: []report.ClusterLink{}, Nodes: []report.ClusterNode{}, Warnings: []string{}}
	machines, err := k.Machines(ctx)
	if err != nil {
		w.Warnings = append(w.Warnings, "the nodes' systems and container runtimes are not known: "+err.Error())
	}
	pods := map[string][]string{}
	for _, l := range as.Status.Links {
		if !l.Runs() {
			continue
		}
		w.Links = append(w.Links, l.Reported())
		for _, e := range l.Ends {
			if !slices.Contains(pods[e.Node], e.Pod) {
				pods[e.Node] = append(pods[e.Node], e.Pod)
			}
		}
	}
	for _, name := range as.Nodes() {
		n := fleet.Node{Name: name, Fault: "it has published no inventory"}
		if i := slices.IndexFunc(nodes, func(n fleet.Node) bool { return n.Name == name }); i >= 0 {
			n = nodes[i]
		}
		w.Nodes = append(w.Nodes, ReportedNode(n, machines[name], len(pods[name])))
	}
	return w
}

// linkRows are the links of a run, as planned.
func linkRows(p *plan.Plan) []report.Link {
	rows := []report.Link{}
	for _, l := range p.Links {
		row := report.Link{Name: l.Name, Transport: l.Transport, Reason: l.Reason, Addresses: map[string]string{}}
		for _, e := range l.Ends {
			row.Ends = append(row.Ends, e.String())
			if e.IP.IsValid() {
				row.Addresses[e.String()] = e.IP.String()
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// placed is a plan for the nodes that a running copy is on. Why a link has its transport on one node does not
// hold for a link between nodes.
func placed(p *plan.Plan, s *StandIn, as *Chain) {
	p.Chain, p.Host = s.Of, strings.Join(as.Nodes(), ", ")
	for i := range p.Functions {
		f := &p.Functions[i]
		f.Host, f.Reason = as.nodeOf(f.Name), "on the node of the chain's own pod"
	}
	for i := range p.Links {
		l := &p.Links[i]
		if now := as.Link(l.Name); now.crosses() {
			l.Reason, l.Rejected, l.Evidence = "its ends are on different nodes", nil, nil
		}
	}
}

// nodeOf is the node of a function's pod; "": it has none.
func (c *Chain) nodeOf(function string) string { return c.anEnd(function).Node }

// anEnd is one of a function's ends, with the pod of all of them and its node. It is empty if there is no pod.
func (c *Chain) anEnd(function string) End {
	for _, l := range c.Status.Links {
		for _, e := range l.Ends {
			if e.Function == function && e.Node != "" {
				return e
			}
		}
	}
	return End{}
}

// Reported is the link as reports show it, without verdicts.
func (l *Link) Reported() report.ClusterLink {
	shown := report.ClusterLink{Name: l.Name, Transport: l.Transport, Ends: []report.ClusterEnd{}, Verdicts: []verdict.Verdict{}, Traffic: []report.ClusterFlow{}}
	for _, e := range l.Ends {
		shown.Ends = append(shown.Ends, report.ClusterEnd{Function: e.Function, Port: e.Port, Pod: e.Pod, Node: e.Node})
	}
	return shown
}

// Verdict is the verdict on a requirement of a link that a condition of the nodes holds.
func (q Condition) Verdict(link string) verdict.Verdict {
	m := verdict.ReadMessage(q.Message)
	text := func(s string) verdict.Figure { return verdict.Figure{Text: cmp.Or(s, document.None)} }
	return verdict.Verdict{
		Link: link, Requirement: q.Type, Verdict: q.Word(), Required: text(m.Required), Measured: text(m.Measured), Bound: text(m.Bound),
		Basis: m.Basis, Reason: m.Because, Needs: m.Needs, Direction: m.At, Method: "judged by the nodes, of the chain's own traffic in the last two minutes",
		Trials: []string{}, Marks: []string{}, Directions: []verdict.Finding{},
	}
}

// ReportedNode is a node as reports show it, with the number of pods there.
func ReportedNode(n fleet.Node, m Machine, pods int) report.ClusterNode {
	shown := report.ClusterNode{Name: n.Name, Fault: n.Fault, Transports: []string{}, OS: m.OS, Runtime: m.Runtime, Pods: pods, Calibration: []inventory.Calibration{}}
	if n.Inventory == nil {
		return shown
	}
	h := n.Inventory.Host
	shown.Kernel, shown.CPUs, shown.CPUModel = h.Kernel, len(h.CPUs), h.CPUModel
	for _, t := range n.Inventory.Transports {
		if t.Status == inventory.OK {
			shown.Transports = append(shown.Transports, t.Name)
		}
	}
	shown.Calibration = append(shown.Calibration, n.Inventory.Calibration...)
	return shown
}
