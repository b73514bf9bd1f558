// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/cluster"
	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/release"
)

func (a *app) clusterReportCommand(k *cluster.Kubectl) *cobra.Command {
	everywhere, file := false, report.PageFile
	cmd := &cobra.Command{
		Use:   "report [CHAIN | DIRECTORY]",
		Short: "Write one page with the verdicts, links, pods and nodes of chains",
		Long: "Write a page that needs no other file: the verdicts of the chains of the namespace, their links with pods and\n" +
			"transports, the traffic of the last seconds, and the nodes. Its tables are printed as well. What your rights do\n" +
			"not show is left out with a warning.\n\n" +
			"Of a DIRECTORY that `kubectl dray verify --active` wrote, rebuild the page there and its tables from the\n" +
			"records, as `dray report` does. Its name has a slash, unlike that of a chain: ./NAME.",
		Example: "  kubectl dray report f1 -n f1-split\n  kubectl dray report -A --output cluster.html\n  kubectl dray report out/f1-20260101T120000.000",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			switch {
			case len(argv) > 0 && strings.ContainsRune(argv[0], '/'):
				if changed(cmd, "output", "all-namespaces") {
					return usageError("the page of %s is written there: give no other flag", argv[0])
				}
				return a.reportDir(argv[0])
			case file == "":
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
	machines, err := k.Machines(ctx)
	if err != nil {
		data.Warnings = append(data.Warnings, "no operating systems and container runtimes are shown: "+err.Error())
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for i := range all {
		data.Chains = append(data.Chains, reportedChain(&all[i], links))
	}
	for _, n := range nodes {
		data.Nodes = append(data.Nodes, cluster.ReportedNode(n, machines[n.Name], podsOn(n.Name, all)))
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
		one := l.Reported()
		one.Traffic = trafficOf(c.Name(), l.Name, links)
		for _, q := range l.Requirements {
			one.Verdicts = append(one.Verdicts, q.Verdict(l.Name))
		}
		shown.Links = append(shown.Links, one)
	}
	for _, p := range c.Status.Paths {
		one := report.ClusterPath{Name: p.Name, Links: p.Links, Verdicts: []verdict.Verdict{}}
		for _, q := range p.Requirements {
			one.Verdicts = append(one.Verdicts, q.Verdict(p.Name))
		}
		shown.Paths = append(shown.Paths, one)
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

// podsOn counts the pods of chains on a node.
func podsOn(node string, all []cluster.Chain) int {
	pods := map[string]bool{}
	for i := range all {
		for _, l := range all[i].Status.Links {
			for _, e := range l.Ends {
				if e.Node == node && e.Pod != "" {
					pods[all[i].Metadata.Namespace+"/"+e.Pod] = true
				}
			}
		}
	}
	return len(pods)
}
