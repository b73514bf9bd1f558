// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/verdict"
)

// RunCluster is where the chain of a run is, if it is in a cluster. A copy of it was measured,
// with draygen in place of each function: its records are those of a run on one host.
type RunCluster struct {
	Context   string `json:"context"` // of kubectl's configuration; "": not known
	Namespace string `json:"namespace"`
	Copy      string `json:"copy"`  // name of the chain that was measured
	Image     string `json:"image"` // of draygen
	// Links are those of the copy, with its pods. Their verdicts are what the nodes say of the
	// chain's own traffic, on what draygen cannot measure: they take the place of its verdicts.
	Links []ClusterLink `json:"links"`
	Nodes []ClusterNode `json:"nodes"` // that have the pods
	// Copied are pods that ran the programs of the chain's own, between the ends of paths.
	Copied []string `json:"copied,omitempty"`
	// Unmeasured are the verdicts on requirements of paths that could not be measured, with the reasons.
	Unmeasured []verdict.Verdict `json:"unmeasured,omitempty"`
	Warnings   []string          `json:"warnings"` // what is not known
}

// with are the verdicts on a run's records, with those of the nodes, and those for which there are no records.
func (c *RunCluster) with(judged []verdict.Verdict) []verdict.Verdict {
	own := slices.Clone(c.Unmeasured)
	for _, l := range c.Links {
		for _, v := range l.Verdicts {
			v.Link = l.Name
			own = append(own, v)
		}
	}
	for _, v := range own {
		same := func(o verdict.Verdict) bool { return o.Link == v.Link && o.Requirement == v.Requirement }
		if i := slices.IndexFunc(judged, same); i >= 0 {
			judged[i] = v
		} else {
			judged = append(judged, v)
		}
	}
	return judged
}

// seen says which verdicts are the nodes'.
func (c *RunCluster) seen() document.Block {
	if c == nil {
		return document.Block{}
	}
	var names []string
	for _, l := range c.Links {
		for _, v := range l.Verdicts {
			names = append(names, l.Name+" "+v.Requirement)
		}
	}
	if len(names) == 0 {
		return document.Block{}
	}
	return document.Block{Notes: []string{"Judged by the nodes, of the chain's own traffic: " + strings.Join(names, ", ") + "."}}
}

// facts are where a run was, for the page's head.
func (c *RunCluster) facts() []document.Fact {
	var names []string
	for _, n := range c.Nodes {
		names = append(names, n.Name)
	}
	return []document.Fact{
		{Name: "Cluster", Text: orNone(c.Context)}, {Name: "Namespace", Text: c.Namespace}, {Name: "Nodes", Text: orNone(strings.Join(names, ", "))},
	}
}

// pods are the pods of a link's ends.
func (c *RunCluster) pods(link string) (facts []document.Fact) {
	if c == nil {
		return nil
	}
	for _, l := range c.Links {
		for _, e := range l.Ends {
			if l.Name == link {
				facts = append(facts, document.Fact{Name: "Pod of " + e.Function + "." + e.Port, Text: strings.Join(e.place(), " ")})
			}
		}
	}
	return facts
}

// clusterSections show where a run was, in place of one host.
func (d *Data) clusterSections() []document.Section {
	c := d.Run.Cluster
	return []document.Section{
		{ID: "pods", Title: "Pods", Head: "Pods", Lead: "Draygen ran in these pods, each on the node of the function that it stands for.",
			Blocks: []document.Block{{Table: linkTable(c.Links)}}},
		{ID: "nodes", Title: "Nodes", Head: "Nodes", Blocks: nodeBlocks(c.Nodes)},
		d.methodSection(),
	}
}

// methodSection says how a chain in a cluster was measured.
func (d *Data) methodSection() document.Section {
	c := d.Run.Cluster
	facts := []document.Fact{
		{Name: "Measured", Text: fmt.Sprintf("chain %s/%s, a copy of chain %s with links of its own", c.Namespace, c.Copy, d.Run.Chain)},
		{Name: "Image of draygen", Text: orNone(c.Image)}, {Name: "Profile", Text: orNone(d.Run.Profile)}, {Name: "Seed", Text: fmt.Sprint(d.Run.Seed)},
	}
	if len(c.Copied) > 0 {
		facts = append(facts, document.Fact{Name: "Copies of the chain's own pods", Text: strings.Join(c.Copied, ", ") + ": their programs passed packets on while paths were measured"})
	}
	var one, two []string
	for _, l := range c.Links {
		if l.crosses() {
			two = append(two, l.Name)
		} else {
			one = append(one, l.Name)
		}
	}
	if len(one) > 0 {
		facts = append(facts, document.Fact{Name: "One clock", Text: strings.Join(one, ", ") + ": both ends are on one node, so their stamps have no clock error"})
	}
	if len(two) > 0 {
		facts = append(facts, document.Fact{Name: "Two clocks", Text: strings.Join(two, ", ") +
			": draygen measures no delay between nodes. The nodes compare their clocks, and their bounds include the error of that"})
	}
	return document.Section{ID: "method", Title: "Method", On: document.Page, Blocks: []document.Block{{List: facts}}}
}

// crosses reports whether the ends are on different nodes.
func (l *ClusterLink) crosses() bool {
	return slices.ContainsFunc(l.Ends, func(e ClusterEnd) bool { return e.Node != l.Ends[0].Node })
}
