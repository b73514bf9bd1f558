// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/cluster"
	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/release"
)

func (a *app) clusterReportCommand(k *cluster.Kubectl) *cobra.Command {
	everywhere, file := false, report.PageFile
	cmd := &cobra.Command{
		Use:   "report [CHAIN]",
		Short: "Write one page with the verdicts, links, pods and nodes of chains",
		Long: "Write a page that needs no other file: the verdicts of the chains of the namespace, their links with pods and\n" +
			"transports, the traffic of the last seconds, and the nodes. Its tables are printed as well. What your rights do\n" +
			"not show is left out with a warning.",
		Example: "  kubectl dray report f1 -n f1-split\n  kubectl dray report -A --output cluster.html",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if file == "" {
				return usageError("--output needs the name of a file")
			}
			all, err := chains(cmd.Context(), k, argv, everywhere)
			if err != nil {
				return err
			}
			p, err := a.writeClusterReport(cmd.Context(), k, reportTitle(k, argv, everywhere), all, file)
			if err != nil {
				return err
			}
			return a.printTables(schemaClusterReport, p)
		},
	}
	addEverywhereFlag(cmd, &everywhere)
	cmd.Flags().StringVarP(&file, "output", "o", file, "file of the page")
	return cmd
}

// writeClusterReport writes the page of chains, and returns it.
func (a *app) writeClusterReport(ctx context.Context, k *cluster.Kubectl, title string, all []cluster.Chain, file string) (page, error) {
	data, err := a.clusterReport(ctx, k, title, all)
	if err != nil {
		return nil, err
	}
	p := data.Document()
	p.Closing = []string{"Report: " + file}
	return p, printTo(file, p.HTML)
}

// clusterReport asks the cluster for what the report shows of chains.
func (a *app) clusterReport(ctx context.Context, k *cluster.Kubectl, title string, all []cluster.Chain) (*report.Cluster, error) {
	data := &report.Cluster{
		Title: title, Context: k.Context(ctx), Time: time.Now(), Dray: release.Version(),
		Chains: []report.ClusterChain{}, Nodes: []report.ClusterNode{}, Warnings: []string{},
	}
	links, err := a.clusterLinks(ctx, k, all)
	if err != nil {
		data.Warnings = append(data.Warnings, "no traffic is shown: "+err.Error())
	}
	nodes, err := k.Nodes(ctx)
	if err != nil {
		data.Warnings = append(data.Warnings, "no nodes are shown: "+err.Error())
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for i := range all {
		data.Chains = append(data.Chains, reportedChain(&all[i], links))
	}
	for _, n := range nodes {
		data.Nodes = append(data.Nodes, reportedNode(n, all))
	}
	return data, nil
}

// reportTitle is what the report is about.
func reportTitle(k *cluster.Kubectl, argv []string, everywhere bool) string {
	switch {
	case len(argv) > 0:
		return argv[0]
	case everywhere:
		return "All chains"
	case k.Namespace != "":
		return "Chains of " + k.Namespace
	}
	return "Chains of the namespace"
}

func reportedChain(c *cluster.Chain, links []live.Link) report.ClusterChain {
	shown := report.ClusterChain{Name: c.Name(), Links: []report.ClusterLink{}, Spec: specText(c.Spec)}
	if shown.State, shown.Detail = stateOf(c); shown.State == stateReady {
		shown.Detail = "its pods may be " + shown.Detail
	}
	for _, l := range c.Status.Links {
		one := report.ClusterLink{Name: l.Name, Transport: l.Transport, Verdicts: []verdict.Verdict{}, Traffic: trafficOf(c.Name(), l.Name, links)}
		for _, e := range l.Ends {
			one.Ends = append(one.Ends, report.ClusterEnd{Function: e.Function, Port: e.Port, Pod: e.Pod, Node: e.Node})
		}
		for _, q := range l.Requirements {
			one.Verdicts = append(one.Verdicts, reportedVerdict(l.Name, q))
		}
		shown.Links = append(shown.Links, one)
	}
	return shown
}

// specText is JSON on several lines.
func specText(text json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return ""
	}
	return b.String()
}

// reportedVerdict is the verdict that a condition holds.
func reportedVerdict(link string, q cluster.Condition) verdict.Verdict {
	m := verdict.ReadMessage(q.Message)
	text := func(s string) verdict.Figure { return verdict.Figure{Text: orDash(s)} }
	return verdict.Verdict{
		Link: link, Requirement: q.Type, Verdict: q.Word(), Required: text(m.Required), Measured: text(m.Measured), Bound: text(m.Bound),
		Basis: m.Basis, Reason: m.Because, Needs: m.Needs, Direction: m.At,
	}
}

// trafficOf is the traffic of a link in the latest interval. Of a link between nodes each
// node reports both directions, but counts only what its own end receives.
func trafficOf(chain, link string, links []live.Link) []report.ClusterFlow {
	flows := map[string]report.ClusterFlow{}
	for _, l := range links {
		if l.Chain != chain || l.Status.Name != link {
			continue
		}
		for _, f := range l.Now {
			figures := live.Figures(f)
			if key := f.From + " " + f.To; f.Received > 0 || flows[key].To == "" {
				flows[key] = report.ClusterFlow{From: f.From, To: f.To, Packets: figures[0], Bitrate: figures[1], P50: figures[2], P99: figures[3], Lost: f.Lost}
			}
		}
	}
	sorted := []report.ClusterFlow{}
	for _, key := range slices.Sorted(maps.Keys(flows)) {
		sorted = append(sorted, flows[key])
	}
	return sorted
}

func reportedNode(n fleet.Node, all []cluster.Chain) report.ClusterNode {
	shown := report.ClusterNode{Name: n.Name, Fault: n.Fault, Transports: []string{}}
	if n.Inventory != nil {
		shown.Kernel, shown.CPUs = n.Inventory.Host.Kernel, len(n.Inventory.Host.CPUs)
		for _, t := range n.Inventory.Transports {
			if t.Status == inventory.OK {
				shown.Transports = append(shown.Transports, t.Name)
			}
		}
	}
	pods := map[string]bool{}
	for i := range all {
		for _, l := range all[i].Status.Links {
			for _, e := range l.Ends {
				if e.Node == n.Name && e.Pod != "" {
					pods[all[i].Metadata.Namespace+"/"+e.Pod] = true
				}
			}
		}
	}
	shown.Pods = len(pods)
	return shown
}
