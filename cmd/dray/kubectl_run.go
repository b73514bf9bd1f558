// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/cluster"
)

const clusterRunLong = `Apply manifests with kubectl, wait until every requirement of their chains is
decided, show the verdicts as verify does, and delete what this run created.
Objects that existed before stay, as the manifests configure them.

Ctrl-C, SIGTERM and errors delete what was created, too. A second Ctrl-C ends
this program at once; what it has not deleted then stays.`

// clusterRun are the flags of `kubectl dray run`.
type clusterRun struct {
	manifests cluster.Manifests
	timeout   time.Duration
	page      string // file of the report; "": none
	keep      bool
}

func (a *app) clusterRunCommand(k *cluster.Kubectl) *cobra.Command {
	var r clusterRun
	cmd := &cobra.Command{
		Use:     "run -f FILE | -k DIR",
		Short:   "Apply manifests with chains, show the verdicts, and delete what was created",
		Long:    clusterRunLong,
		Example: "  kubectl dray run -k examples/kubernetes/f1-split\n  kubectl dray run -f chain.yaml -f pods.yaml --timeout 2m --output f1.html\n  helm template ran | kubectl dray run -f - --json",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (len(r.manifests.Files) == 0) == (r.manifests.Kustomize == "") {
				return usageError("name the manifests: either files with -f, or a kustomization with -k; usage: %s", cmd.UseLine())
			}
			return a.runOnCluster(cmd.Context(), k, r)
		},
	}
	addVerdictTimeoutFlag(cmd, &r.timeout)
	f := cmd.Flags()
	f.StringArrayVarP(&r.manifests.Files, "filename", "f", nil, "manifest, or directory of manifests; - is standard input (may be repeated)")
	f.StringVarP(&r.manifests.Kustomize, "kustomize", "k", "", "directory with a kustomization.yaml")
	f.StringVarP(&r.page, "output", "o", "", "also write the page of a report to this file")
	f.BoolVar(&r.keep, "keep", false, "delete nothing afterwards")
	// It fails only for a missing flag.
	_ = cmd.MarkFlagDirname("kustomize")
	return cmd
}

func (a *app) runOnCluster(ctx context.Context, k *cluster.Kubectl, r clusterRun) (err error) {
	objects, err := k.Read(ctx, r.manifests)
	if err != nil {
		return err
	}
	look, title := chainsAmong(objects, k)
	if title == "" {
		return &fixableError{Text: "the manifests hold no Chain, so there is nothing to judge", Fix: "dray export --kubernetes FILE"}
	}
	a.progress("Applying %s", count(len(objects), "object"))
	created, err := k.Apply(ctx, objects)
	defer func() { err = andThen(err, a.endClusterRun(ctx, k, created, r.keep)) }()
	if err != nil {
		return err
	}
	all, err := a.awaitVerdicts(ctx, r.timeout, look)
	if err != nil {
		return err
	}
	err = a.showChains(clusterChains(all))
	if r.page == "" {
		return err
	}
	_, failed := a.writeClusterReport(ctx, k, title, all, r.page)
	return andThen(err, failed)
}

// chainsAmong looks at the Chains among objects. The title names them; "": there is none.
func chainsAmong(objects []cluster.Object, k *cluster.Kubectl) (look func(context.Context) ([]cluster.Chain, error), title string) {
	var names []string
	var wanted []cluster.Object
	for _, o := range objects {
		if o.IsChain() {
			names, wanted = append(names, o.Metadata.Name), append(wanted, o)
		}
	}
	return func(ctx context.Context) (now []cluster.Chain, err error) {
		for _, o := range wanted {
			c, err := k.ChainIn(ctx, o.Metadata.Namespace, o.Metadata.Name)
			if err != nil {
				return nil, fmt.Errorf("chain %s/%s: %w", o.Metadata.Namespace, o.Metadata.Name, err)
			}
			now = append(now, *c)
		}
		return now, nil
	}, strings.Join(names, ", ")
}

// endClusterRun deletes what a run created, or lists it.
func (a *app) endClusterRun(ctx context.Context, k *cluster.Kubectl, created []cluster.Object, keep bool) error {
	if len(created) == 0 {
		return nil
	}
	if keep {
		var names []string
		for _, o := range created {
			names = append(names, o.Name())
		}
		a.progress("Created, and kept: %s", strings.Join(names, ", "))
		return nil
	}
	a.progress("Deleting the %s that this run created", count(len(created), "object"))
	if err := k.Delete(ctx, created); err != nil {
		return fmt.Errorf("not everything that this run created is deleted: %w", err)
	}
	return nil
}

// andThen is the error of a command and of a later step, with the exit code of the command.
func andThen(err, later error) error {
	switch {
	case later == nil:
		return err
	case silent(err):
		return &codeError{codeOf(err), later}
	}
	return errors.Join(err, later)
}
