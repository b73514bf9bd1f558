// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Cluster is what a cluster's chains do at one time.
type Cluster struct {
	Schema  int            `json:"schema"`
	Title   string         `json:"title"` // the chain, or the namespace
	Context string         `json:"context"`
	Time    time.Time      `json:"time"`
	Dray    string         `json:"dray"` // version of this program
	Chains  []ClusterChain `json:"chains"`
	Nodes   []ClusterNode  `json:"nodes"`
	// Warnings say what is missing.
	Warnings []string `json:"warnings"`
}

// ClusterChain is one chain of a cluster.
type ClusterChain struct {
	Name   string        `json:"name"` // "namespace/name"
	State  string        `json:"state"`
	Detail string        `json:"detail"`
	Links  []ClusterLink `json:"links"`
	Paths  []ClusterPath `json:"paths,omitempty"`
	Spec   string        `json:"spec"` // as JSON
}

// ClusterLink is one link, with its traffic and verdicts.
type ClusterLink struct {
	Name      string            `json:"name"`
	Transport string            `json:"transport"`
	Ends      []ClusterEnd      `json:"ends"`
	Verdicts  []verdict.Verdict `json:"verdicts"`
	Traffic   []ClusterFlow     `json:"traffic"` // none: no node has reported any
}

// ClusterPath is one path, with its verdicts.
type ClusterPath struct {
	Name     string            `json:"name"`
	Links    []string          `json:"links"` // that the packets cross, in order
	Verdicts []verdict.Verdict `json:"verdicts"`
}

// ClusterEnd is a port, and the pod that has it.
type ClusterEnd struct {
	Function string `json:"function"`
	Port     string `json:"port"`
	Pod      string `json:"pod"`  // "": none yet
	Node     string `json:"node"` // "": none yet
}

// ClusterFlow is the traffic of one direction, as text with units.
type ClusterFlow struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Packets string `json:"packets"` // a second
	Bitrate string `json:"bitrate"`
	P50     string `json:"p50"` // latency, one way
	P99     string `json:"p99"`
	Lost    uint64 `json:"lost"`
}

// ClusterNode is a node as its dray-node describes it.
type ClusterNode struct {
	Name       string   `json:"name"`
	Kernel     string   `json:"kernel"`
	CPUs       int      `json:"cpus"`
	Transports []string `json:"transports"` // that links can have there
	Pods       int      `json:"pods"`       // with ports of these chains
	Fault      string   `json:"fault"`      // why nothing can be planned there
	OS         string   `json:"os"`
	CPUModel   string   `json:"cpu_model"`
	Runtime    string   `json:"runtime"` // of containers, with its version; "": not known
	// Calibration is what the node's own measurements say of its transports.
	Calibration []inventory.Calibration `json:"calibration"`
}

const brandOfCluster = "Drayage on Kubernetes"

// Document is the report: verdicts first, then each chain, then the nodes.
func (c *Cluster) Document() *document.Document {
	c.Schema = outputSchema
	all := c.verdicts()
	doc := &document.Document{
		Brand: brandOfCluster, Title: c.Title, Headline: Headline(all), Tone: toneOf(overall(all)), Data: c, Seen: true,
		Facts: []document.Fact{
			{Name: "Cluster", Text: c.Context}, {Name: "Time", Text: c.Time.Format(timeFormat)}, {Name: "Chains", Text: fmt.Sprint(len(c.Chains))},
			{Name: "Nodes", Text: fmt.Sprint(len(c.Nodes))}, {Name: "dray", Text: c.Dray},
		},
		Sections: []document.Section{{ID: "verdicts", Title: "Verdicts", Blocks: append(c.verdictBlocks(all), warningsBlock(c.Warnings))}},
	}
	for i := range c.Chains {
		doc.Sections = append(doc.Sections, c.Chains[i].section(i))
	}
	doc.Sections = append(doc.Sections, c.nodeSection())
	return doc
}

// verdicts are those of all chains; the name of a link or path has its chain's.
func (c *Cluster) verdicts() []verdict.Verdict {
	var all []verdict.Verdict
	for _, chain := range c.Chains {
		for _, v := range append(chain.verdicts(), chain.pathVerdicts()...) {
			v.Link = chain.Name + "/" + v.Link
			all = append(all, v)
		}
	}
	return all
}

func (c *Cluster) verdictBlocks(all []verdict.Verdict) []document.Block {
	if len(all) == 0 {
		return []document.Block{{Paragraphs: []string{"No link or path requires anything, so there is nothing to judge."}}}
	}
	hrefs, head := map[string]string{}, "Link"
	for i, chain := range c.Chains {
		for _, l := range chain.Links {
			hrefs[chain.Name+"/"+l.Name] = "#" + chainID(i)
		}
		for _, p := range chain.Paths {
			hrefs[chain.Name+"/"+p.Name], head = "#"+chainID(i), "Link or path"
		}
	}
	t := &document.Table{Label: "Verdicts", Columns: []document.Column{
		{Head: head, Key: true, Text: true}, {Head: "Requirement", Key: true, Text: true}, {Head: "Required", Text: true}, {Head: "Measured", Text: true},
		{Head: "Bound", Text: true}, {Head: "Verdict", Text: true},
	}}
	var reasons []string
	for _, v := range all {
		cells := document.Text(v.Link, v.Requirement, v.Required.Text, v.Measured.Text, v.Bound.Text, string(v.Verdict))
		cells[0].Href, cells[5].Tone = hrefs[v.Link], toneOf(string(v.Verdict))
		t.Rows = append(t.Rows, document.Row{Cells: cells, Note: basisText(v.Basis) + reasonText(v.Reason, v.Needs)})
		if v.Verdict != verdict.Met {
			reasons = append(reasons, fmt.Sprintf("%s of %s %s: %s", v.Requirement, v.Link, was(v.Verdict), reasonText(v.Reason, v.Needs)))
		}
	}
	return []document.Block{{Table: t}, {On: document.Terminal, Paragraphs: reasons}}
}

func chainID(i int) string { return fmt.Sprintf("chain-%d", i+1) }

// section shows a chain: its state, its links with their pods, and their traffic.
func (c *ClusterChain) section(i int) document.Section {
	s := document.Section{ID: chainID(i), Title: "Chain " + c.Name, Over: c.State, Head: "Chain " + c.Name + ": " + c.State, Lead: document.Sentence(c.Detail)}
	if len(c.Links) > 0 {
		drawn := topologyOfPods(c.Links, c.verdicts(), nil)
		s.Blocks = append(s.Blocks, document.Block{Drawing: drawn.wide() + drawn.narrow()}, document.Block{Table: linkTable(c.Links)})
	}
	if t := c.pathTable(); len(t.Rows) > 0 {
		s.Blocks = append(s.Blocks, document.Block{Table: t})
	}
	if t := c.trafficTable(); len(t.Rows) > 0 {
		s.Blocks = append(s.Blocks, document.Block{Title: "Traffic", Table: t})
	}
	if c.Spec != "" {
		s.Blocks = append(s.Blocks, document.Block{On: document.Page, Folded: &document.Folded{Summary: "Show the chain", Source: c.Spec}})
	}
	return s
}

func (c *ClusterChain) verdicts() (all []verdict.Verdict) {
	for _, l := range c.Links {
		all = append(all, l.Verdicts...)
	}
	return all
}

func (c *ClusterChain) pathVerdicts() (all []verdict.Verdict) {
	for _, p := range c.Paths {
		all = append(all, p.Verdicts...)
	}
	return all
}

// topologyOfPods is a chain, with the pod and the node of each function.
func topologyOfPods(all []ClusterLink, verdicts []verdict.Verdict, hrefs map[string]string) topology {
	var functions []string
	var links []plan.Link
	where := map[string][]string{}
	for _, l := range all {
		drawn := plan.Link{Name: l.Name, Transport: l.Transport}
		for _, e := range l.Ends {
			drawn.Ends = append(drawn.Ends, plan.End{Function: e.Function, Port: e.Port})
			if _, known := where[e.Function]; !known {
				functions, where[e.Function] = append(functions, e.Function), e.place()
			}
		}
		links = append(links, drawn)
	}
	return arrange(functions, links, builder{where: where, verdicts: verdicts, hrefs: hrefs})
}

// place is where an end's pod is: in two lines, as names are long.
func (e ClusterEnd) place() []string {
	switch {
	case e.Pod == "":
		return []string{"no pod"}
	case e.Node == "":
		return []string{e.Pod, "on no node yet"}
	}
	return []string{e.Pod, "on " + e.Node}
}

func linkTable(links []ClusterLink) *document.Table {
	t := &document.Table{Label: "Links", Columns: []document.Column{
		{Head: "Link", Key: true, Text: true}, {Head: "Transport", Text: true}, {Head: "Port", Text: true}, {Head: "Pod", Text: true}, {Head: "Node", Text: true},
	}}
	for _, l := range links {
		for _, e := range l.Ends { // on a narrow page, each row stands by itself
			t.Rows = append(t.Rows, document.Row{Cells: document.Text(l.Name, l.Transport, e.Function+"."+e.Port, orNone(e.Pod), orNone(e.Node))})
		}
	}
	return t
}

func (c *ClusterChain) pathTable() *document.Table {
	t := &document.Table{Label: "Paths", Columns: []document.Column{{Head: "Path", Key: true, Text: true}, {Head: "Over", Text: true}}}
	for _, p := range c.Paths {
		t.Rows = append(t.Rows, document.Row{Cells: document.Text(p.Name, strings.Join(p.Links, ", "))})
	}
	return t
}

func (c *ClusterChain) trafficTable() *document.Table {
	t := &document.Table{Label: "Traffic of the last seconds", Columns: []document.Column{
		{Head: "Direction", Key: true, Text: true}, {Head: "Packets"}, {Head: "Bitrate"}, {Head: "p50", Name: true}, {Head: "p99", Name: true}, {Head: "Lost"},
	}}
	for _, l := range c.Links {
		for _, f := range l.Traffic {
			t.Rows = append(t.Rows, document.Row{Cells: document.Text(f.From+" → "+f.To, f.Packets, f.Bitrate, f.P50, f.P99, fmt.Sprint(f.Lost))})
		}
	}
	return t
}

func (c *Cluster) nodeSection() document.Section {
	return document.Section{ID: "nodes", Title: "Nodes", Head: "Nodes", Blocks: nodeBlocks(c.Nodes)}
}
