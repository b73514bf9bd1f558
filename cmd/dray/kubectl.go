// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/cluster"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/manifest"
)

// kubectlProgram is the name under which kubectl finds its plugin. It is a link to dray.
const kubectlProgram = "kubectl-dray"

// isKubectl reports whether this program was started as the plugin.
func isKubectl(program string) bool { return filepath.Base(program) == kubectlProgram }

const kubectlLong = `Drayage on Kubernetes: the chains of a cluster, what their links do, and the
packets that pass them. These commands work through kubectl, with your own
rights; docs/kubernetes.md lists which rights each needs.

Exit codes:
  0  success; for status, verify and run: every requirement was met
  1  error
  2  wrong usage
  3  infeasible: no node can do what the chain requires; its pods stay pending
  4  a requirement was measured and missed
  5  no requirement was missed, but some are undecided
  130 (Ctrl-C), 143 (SIGTERM), 129 (SIGHUP): ended by a signal

With --json, every command prints one object on standard output, even if it
fails. docs/json.md lists the objects.`

const kubectlExample = `  kubectl dray status                      the chains of the namespace, and their verdicts
  kubectl dray plan f1                     what would be done on each node, and why
  kubectl dray verify f1 -n f1-split       wait until every requirement is decided
  kubectl dray run -k DIR                  apply, verify, and delete again`

// runKubectl is the whole plugin.
func runKubectl(ctx context.Context, args []string, out, errOut io.Writer) error {
	return execute(ctx, newKubectlRoot, args, out, errOut)
}

// newKubectlRoot makes the commands of `kubectl dray`.
func newKubectlRoot(a *app) *cobra.Command {
	k := &cluster.Kubectl{}
	root := &cobra.Command{
		Use:           kubectlProgram,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl dray"},
		Short:         "Drayage on Kubernetes: chains, their links and verdicts",
		Long:          kubectlLong,
		Example:       kubectlExample,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          rootRun,

		SuggestionsMinimumDistance: 2,
		// kubectl completes its plugins by kubectl_complete-dray.
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	a.commonFlags(root)
	f := root.PersistentFlags()
	f.StringVarP(&k.Namespace, "namespace", "n", "", "namespace of the chains (default: the one of kubectl's configuration)")
	f.StringVar(&k.System, "dray-namespace", manifest.Namespace, "namespace in which Drayage is installed")
	for name, usage := range map[string]string{"kubeconfig": "file with kubectl's configuration", "context": "context of kubectl's configuration"} {
		f.Func(name, usage, func(value string) error {
			k.Flags = append(k.Flags, "--"+name+"="+value)
			return nil
		})
	}
	root.AddCommand(a.clusterStatusCommand(k), a.clusterPlanCommand(k), a.clusterVerifyCommand(k), a.clusterRunCommand(k), a.clusterTopCommand(k), a.clusterReportCommand(k), a.clusterCaptureCommand(k), a.clusterRelinkCommand(k), a.versionCommand())
	a.completeKubectl(root, k)
	a.fitHelp(root)
	return root
}

// completeKubectl sets up completion of all arguments.
func (a *app) completeKubectl(root *cobra.Command, k *cluster.Kubectl) {
	chains := func([]string) []string {
		all, err := k.Chains(context.Background(), false)
		if err != nil {
			return nil
		}
		var names []string
		for _, c := range all {
			names = append(names, c.Metadata.Name)
		}
		return names
	}
	ports := func(argv []string) []string {
		c, err := k.Chain(context.Background(), argv[0])
		if err != nil {
			return nil
		}
		var names []string
		for _, l := range c.Status.Links {
			for _, e := range l.Ends {
				names = append(names, e.Name())
			}
		}
		return names
	}
	links := func(argv []string) []string {
		c, err := k.Chain(context.Background(), argv[0])
		if err != nil {
			return nil
		}
		return c.LinksOfSpec()
	}
	transports := func([]string) []string {
		return append(slices.Sorted(maps.Keys(fleet.Backends)), chain.TransportAuto)
	}
	for name, arguments := range map[string][]words{
		"relink": {chains, links, transports},
		"status": {chains}, "plan": {chains}, "verify": {chains}, "top": {chains}, "report": {chains}, "capture": {chains, ports}, "run": {}, "version": {},
	} {
		command(root, name).ValidArgsFunction = completeWords(arguments)
	}
	completeFlag(root, "color", []string{colorAuto, colorAlways, colorNever})
}

// addEverywhereFlag is kubectl's own.
func addEverywhereFlag(cmd *cobra.Command, everywhere *bool) {
	cmd.Flags().BoolVarP(everywhere, "all-namespaces", "A", false, "the chains of all namespaces")
}

// chains are the named chain, or all.
func chains(ctx context.Context, k *cluster.Kubectl, argv []string, everywhere bool) ([]cluster.Chain, error) {
	if len(argv) == 0 {
		return k.Chains(ctx, everywhere)
	}
	if everywhere {
		return nil, usageError("--all-namespaces and the name of one chain exclude each other: name its namespace with --namespace")
	}
	c, err := k.Chain(ctx, argv[0])
	if err != nil {
		return nil, err
	}
	return []cluster.Chain{*c}, nil
}

// every calls f at once and then n times more; n < 0: until ctx ends, which is no error.
func every(ctx context.Context, interval time.Duration, n int, f func(context.Context) error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for i := 0; ; i++ {
		if err := f(ctx); err != nil || i == n {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
