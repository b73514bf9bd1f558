// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/cluster"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/layout"
	"github.com/drayage/dray/internal/spec/manifest"
)

// clusterChain is one chain in `kubectl dray status --json`.
type clusterChain struct {
	Namespace string        `json:"namespace"`
	Chain     string        `json:"chain"`
	State     string        `json:"state"`  // one of the words of stateOf
	Detail    string        `json:"detail"` // the nodes, or why the chain is not ready
	Links     []clusterLink `json:"links"`  // none: the chain is not planned
	Paths     []clusterPath `json:"paths,omitempty"`
	Placement []fleet.Spot  `json:"placement,omitempty"`
	Exit      int           `json:"exit_code"` // of the verdicts
	Active    *activeRun    `json:"active,omitempty"`
	Verified  *clusterCheck `json:"verified,omitempty"` // what `verify --active --record` found last
}

// clusterCheck is the condition Verified.
type clusterCheck struct {
	Verdict verdict.Word `json:"verdict"`
	Message string       `json:"message"`
	Since   time.Time    `json:"since"`
}

type clusterLink struct {
	Name         string               `json:"name"`
	Transport    string               `json:"transport"`
	Ends         []cluster.End        `json:"ends"`
	Idle         bool                 `json:"idle"` // a link of an instance that no pod has
	Requirements []clusterRequirement `json:"requirements"`
}

type clusterPath struct {
	Name         string               `json:"name"`
	Links        []string             `json:"links"`
	Requirements []clusterRequirement `json:"requirements"`
}

// clusterRequirement is the verdict on a requirement, with what it rests on.
type clusterRequirement struct {
	Requirement string       `json:"requirement"`
	Verdict     verdict.Word `json:"verdict"`
	verdict.Message
	Since time.Time `json:"since"`
}

// States of a chain.
const (
	stateReady      = "ready"       // every link has its pods
	stateWaiting    = "waiting"     // for pods
	stateInfeasible = "infeasible"  // no node can do what the chain requires
	stateNotPlanned = "not planned" // for another reason
)

// watchInterval is the time between two looks at the cluster.
const watchInterval = 2 * time.Second

func (a *app) clusterStatusCommand(k *cluster.Kubectl) *cobra.Command {
	var everywhere, watch bool
	cmd := &cobra.Command{
		Use:   "status [CHAIN]",
		Short: "Show chains, where their links are, and the verdict on each requirement",
		Long: "Show the chains of the namespace: where each link has its pods, and whether each requirement is met. The\n" +
			"nodes judge the last two minutes of the applications' own traffic. With --watch, the table is redrawn until\n" +
			"q or Ctrl-C; otherwise the exit code is that of the verdicts.",
		Example: "  kubectl dray status\n  kubectl dray status f1 -n f1-split --json\n  kubectl dray status -A --watch",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			look := func(ctx context.Context) ([]clusterChain, error) {
				all, err := chains(ctx, k, argv, everywhere)
				return clusterChains(all), err
			}
			if watch {
				return a.watchChains(cmd.Context(), look)
			}
			all, err := look(cmd.Context())
			if err != nil {
				return err
			}
			return a.showChains(all)
		},
	}
	addEverywhereFlag(cmd, &everywhere)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "look again every two seconds")
	return cmd
}

// clusterChains are chains as they are shown.
func clusterChains(all []cluster.Chain) []clusterChain {
	shown := []clusterChain{}
	for i := range all {
		shown = append(shown, clusterChainOf(&all[i]))
	}
	return shown
}

func clusterChainOf(c *cluster.Chain) clusterChain {
	s := clusterChain{Namespace: c.Metadata.Namespace, Chain: c.Metadata.Name, Links: []clusterLink{}, Placement: c.Status.Placement}
	s.State, s.Detail = stateOf(c)
	if v := c.Condition(manifest.ConditionVerified); v.Status != "" {
		s.Verified = &clusterCheck{v.Word(), v.Message, v.Since}
		if v.Seen < c.Metadata.Generation {
			s.Verified.Message = "before the chain changed: " + v.Message
		}
	}
	for _, l := range c.Status.Links {
		s.Links = append(s.Links, clusterLink{Name: l.Name, Transport: l.Transport, Ends: l.Ends, Idle: l.Idle, Requirements: requirementsOf(l.Requirements)})
	}
	for _, p := range c.Status.Paths {
		s.Paths = append(s.Paths, clusterPath{Name: p.Name, Links: p.Links, Requirements: requirementsOf(p.Requirements)})
	}
	s.Exit = s.exitCode()
	return s
}

func requirementsOf(all []cluster.Condition) []clusterRequirement {
	shown := []clusterRequirement{}
	for _, q := range all {
		shown = append(shown, clusterRequirement{q.Type, q.Word(), verdict.ReadMessage(q.Message), q.Since})
	}
	return shown
}

// judged is what has requirements: a link or a path.
type judged struct {
	kind, name   string // "link" or "path"
	requirements []clusterRequirement
}

// judged are all links, then all paths.
func (s *clusterChain) judged() (all []judged) {
	for _, l := range s.Links {
		all = append(all, judged{"link", l.Name, l.Requirements})
	}
	for _, p := range s.Paths {
		all = append(all, judged{"path", p.Name, p.Requirements})
	}
	return all
}

// unseen is the detail of a chain whose status is missing, or about an earlier chain.
const unseen = "dray-operator has not seen this chain as it is now: is the Deployment dray-operator running?"

// stateOf is the state of a chain, and what there is to say of it.
func stateOf(c *cluster.Chain) (state, detail string) {
	planned, ready := c.Condition(manifest.ConditionPlanned), c.Condition(manifest.ConditionReady)
	switch {
	case !c.Seen():
		return stateNotPlanned, unseen
	case planned.Reason == manifest.ReasonInfeasible:
		return stateInfeasible, planned.Message
	case !planned.Holds():
		return stateNotPlanned, planned.Message
	case !ready.Holds():
		return stateWaiting, ready.Message
	}
	return stateReady, planned.Message
}

// exitCode is the exit code of a chain's verdicts.
func (s *clusterChain) exitCode() int {
	switch s.State {
	case stateInfeasible:
		return exitInfeasible
	case stateNotPlanned:
		return exitError
	}
	var all []verdict.Verdict
	for _, j := range s.judged() {
		for _, q := range j.requirements {
			all = append(all, verdict.Verdict{Verdict: q.Verdict})
		}
	}
	code := verdict.ExitCode(all)
	if code == exitOK && s.State == stateWaiting {
		return exitNotMeasurable
	}
	return code
}

// showChains prints chains, and returns the exit code of the worst: one without a plan,
// then one that misses a requirement.
func (a *app) showChains(all []clusterChain) error {
	var err error
	if a.json {
		err = a.printJSON(schemaCluster, map[string]any{"chains": all})
	} else {
		err = a.printText(func(w io.Writer, width int) error { return printChains(w, width, all) })
	}
	if err != nil {
		return err
	}
	worst := exitOK
	for _, c := range all {
		if c.Exit != exitOK && (worst == exitOK || c.Exit < worst) {
			worst = c.Exit
		}
	}
	if worst != exitOK {
		return &codeError{Code: worst}
	}
	return nil
}

// watchChains shows chains again and again, until a key or a signal.
func (a *app) watchChains(ctx context.Context, look func(context.Context) ([]clusterChain, error)) error {
	ctx, leave, err := a.untilKey(ctx, os.Stdin)
	if err != nil {
		return err
	}
	defer leave()
	return every(ctx, watchInterval, -1, func(ctx context.Context) error {
		all, err := look(ctx)
		if err != nil {
			return err
		}
		if a.json {
			return a.printLine(schemaCluster, map[string]any{"time": time.Now(), "chains": all})
		}
		var page bytes.Buffer
		fmt.Fprintf(&page, "%s, every %v\n\n", time.Now().Format(time.TimeOnly), watchInterval)
		if err := printChains(&page, a.width(), all); err != nil {
			return err
		}
		return a.drawPage(page.Bytes())
	})
}

func printChains(w io.Writer, width int, all []clusterChain) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no chains; `kubectl dray status --all-namespaces` looks everywhere")
		return err
	}
	var t layout.Table
	for _, c := range all {
		t.Add("chain "+c.name(), c.State, c.Detail)
		if c.Verified != nil {
			t.Add("  verified", string(c.Verified.Verdict), c.Verified.Message)
		}
		for _, s := range c.Placement {
			t.Add("  function "+s.Function, "on "+s.Node, s.Reason)
		}
		for _, l := range c.Links {
			t.Add("  link "+l.Name, l.state(), endsText(l.Ends))
		}
		for _, p := range c.Paths {
			t.Add("  path "+p.Name, "", "over "+strings.Join(p.Links, ", "))
		}
	}
	if err := t.Write(w, width); err != nil {
		return err
	}
	if err := printVerdicts(w, width, all); err != nil {
		return err
	}
	for _, c := range all {
		if c.Active != nil && c.Active.Directory != "" {
			fmt.Fprintf(w, "\nReport: %s\n", filepath.Join(c.Active.Directory, report.PageFile))
		}
	}
	return nil
}

// state is the link's transport, or that nothing uses the link.
func (l *clusterLink) state() string {
	if l.Idle {
		return "idle"
	}
	return l.Transport
}

func (s *clusterChain) name() string { return s.Namespace + "/" + s.Chain }

func endsText(ends []cluster.End) string {
	var texts []string
	for _, e := range ends {
		where := "no pod"
		if e.Pod != "" {
			where = "pod " + e.Pod + " on " + cmp.Or(e.Node, "no node yet")
		}
		texts = append(texts, fmt.Sprintf("%s (%s)", e.Name(), where))
	}
	return strings.Join(texts, ", ")
}

// printVerdicts writes a table of all requirements, and below it why some are not met.
func printVerdicts(w io.Writer, width int, all []clusterChain) error {
	t := layout.Table{Head: []string{headOf(all), "REQUIREMENT", "REQUIRED", "MEASURED", "BOUND", "VERDICT", "BASIS"}}
	var why []string
	for _, c := range all {
		for _, j := range c.judged() {
			for _, q := range j.requirements {
				name := c.name() + "/" + j.name
				t.Add(name, q.Requirement, orDash(q.Required), orDash(q.Measured), orDash(q.Bound), string(q.Verdict), orDash(q.Basis))
				if q.Verdict != verdict.Met {
					why = append(why, fmt.Sprintf("%s, %s: %s", name, q.Requirement, q.reason()))
				}
			}
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	if err := t.Write(w, width); err != nil {
		return err
	}
	if len(why) > 0 {
		fmt.Fprintln(w)
	}
	for _, text := range why {
		fmt.Fprintln(w, strings.Join(layout.Wrap(text, width), "\n"))
	}
	return nil
}

// headOf is the head of the column that names links, and paths if there are any.
func headOf(all []clusterChain) string {
	if slices.ContainsFunc(all, func(c clusterChain) bool { return len(c.Paths) > 0 }) {
		return "LINK OR PATH"
	}
	return "LINK"
}

// reason is why a requirement is not met.
func (q *clusterRequirement) reason() string {
	text := q.Because + orEmpty("; needs ", q.Needs)
	if q.At == "" {
		return text
	}
	return q.At + ": " + text
}

// orDash is the text, or the dash for a figure that there is not.
func orDash(text string) string { return cmp.Or(text, "–") }
