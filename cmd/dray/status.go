// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/layout"
)

// chainStatus is one chain in `dray status --json`.
type chainStatus struct {
	node.Found
	Supervised    bool                  `json:"supervised"`
	Supervisor    *host.ProcessID       `json:"supervisor,omitempty"` // the last one, if any
	Functions     []node.FunctionStatus `json:"functions"`
	Grants        map[string]node.Grant `json:"grants,omitempty"` // by function with compute
	Links         []linkStatus          `json:"links"`
	Broker        *node.Broker          `json:"broker,omitempty"` // if the chain has native ports
	brokerAnswers bool
	Ports         map[string]string `json:"ports,omitempty"` // by function: the directory of its native ports' sockets
	// Live is the functions' report of their native ports.
	Live []live.Link `json:"live,omitempty"`
}

type linkStatus struct {
	Name      string `json:"name"`
	Transport string `json:"transport"`
	// Forwarding is set if the transport has a choice.
	Forwarding chain.Forwarding `json:"forwarding,omitempty"`
	Ends       []string         `json:"ends"`
	Error      string           `json:"error,omitempty"` // the parts that are down
	// Revival is set if its processes were restarted, or will be.
	Revival *node.Revival `json:"revival,omitempty"`
	way     string        // of both, as planned
}

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status [CHAIN]",
		Short: "Show the chains of this host, their functions and links",
		Long: "Show the chains of this host, their functions and links. Links with native ports are observed for a second,\n" +
			"to show their traffic and whether it meets their requirements; `dray top` keeps watching.",
		Example: "  dray status\n  dray status f1-split --json",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			n, err := a.node()
			if err != nil {
				return err
			}
			list, err := n.List()
			if err != nil {
				return err
			}
			statuses := []chainStatus{}
			for _, found := range list {
				if len(argv) == 0 || argv[0] == found.Chain {
					statuses = append(statuses, statusOf(cmd.Context(), n, found))
				}
			}
			if len(argv) == 1 && len(statuses) == 0 {
				return fmt.Errorf("no chain %q on this host; `dray status` lists the chains", argv[0])
			}
			if err := a.addLive(cmd.Context(), statuses); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(schemaStatus, map[string]any{"chains": statuses})
			}
			return a.printText(func(w io.Writer, width int) error { return printStatus(w, width, statuses) })
		},
	}
}

func statusOf(ctx context.Context, n *node.Node, found node.Found) chainStatus {
	s := chainStatus{Found: found, Functions: []node.FunctionStatus{}, Links: []linkStatus{}}
	live, err := n.Open(found.Chain)
	if err != nil {
		if s.Condition == node.Up { // and this version does not accept its file
			s.Detail = err.Error()
		}
		return s // else found.Condition says why
	}
	functions, supervised, err := live.Status()
	if err != nil {
		s.Detail = err.Error()
	}
	s.Functions, s.Supervised, s.Supervisor = append(s.Functions, functions...), supervised, live.Supervisor()
	addFaults(s.Functions, live.Check(ctx))
	if s.Broker, err = live.Broker(); err != nil {
		s.Detail = err.Error()
	}
	s.Grants = live.Grants()
	s.Ports, s.brokerAnswers = live.PortDirs(), live.BrokerAnswers()
	faults := live.LinkFaults()
	revivals, err := live.Revivals()
	if err != nil {
		s.Detail = err.Error()
	}
	for _, l := range live.State.Plan.Links {
		ls := linkStatus{Name: l.Name, Transport: l.Transport, Forwarding: l.Forwarding, way: l.Way(), Error: faults[l.Name]}
		if r, ok := revivals[l.Name]; ok {
			ls.Revival = &r
		}
		for _, e := range l.Ends {
			ls.Ends = append(ls.Ends, e.String())
		}
		s.Links = append(s.Links, ls)
	}
	return s
}

// addFaults adds what the runtimes say of functions.
func addFaults(functions []node.FunctionStatus, faults map[string]error) {
	for i := range functions {
		f, gone := &functions[i], new(runtime.GoneError)
		switch err := faults[f.Name]; {
		case errors.As(err, &gone):
			f.Phase, f.Error = node.PhaseGone, err.Error()
		case err != nil:
			f.Error = cmp.Or(f.Error, "cannot be asked: "+err.Error())
		}
	}
}

func printStatus(w io.Writer, width int, statuses []chainStatus) error {
	if len(statuses) == 0 {
		fmt.Fprintln(w, "no chains; `dray up FILE` brings one up")
		return nil
	}
	var t layout.Table
	for _, s := range statuses {
		t.Add("chain "+s.Chain, conditionText(s), s.Detail)
		for _, f := range s.Functions {
			t.Add("  function "+f.Name, string(f.Phase), functionDetail(f))
			if g, ok := s.Grants[f.Name]; ok {
				t.Add("    compute", "granted", g.String())
			}
		}
		for _, l := range s.Links {
			t.Add("  link "+l.Name, l.way, fmt.Sprintf("%v%s%s", l.Ends, revivalText(l.Revival), orEmpty(", but ", l.Error)))
		}
		if s.Supervised {
			t.Add("  supervisor", string(node.PhaseRunning), fmt.Sprintf("process %d", s.Supervisor.PID))
		}
		if s.Broker != nil {
			t.Add("  broker", string(brokerPhase(s)), brokerDetail(s.Broker))
		}
	}
	if err := t.Write(w, width); err != nil {
		return err
	}
	return printLive(w, width, statuses)
}

func functionDetail(f node.FunctionStatus) string {
	detail := "since " + f.Since.Format(time.DateTime)
	if f.Process.PID != 0 {
		detail = fmt.Sprintf("process %d, %s", f.Process.PID, detail)
	}
	if f.Restarts > 0 {
		detail += ", " + count(f.Restarts, "restart")
	}
	switch f.Phase {
	case node.PhaseFailed, node.PhaseRestarting:
		detail += ", " + endedText(f)
	case node.PhaseGone:
		detail = f.Error
	default:
		detail += orEmpty(", ", f.Error)
	}
	return detail
}

// revivalText says how often a link's processes were restarted.
func revivalText(r *node.Revival) string {
	if r == nil || r.Restarts == 0 {
		return ""
	}
	return fmt.Sprintf(", %s, the last within %s at %s", count(r.Restarts, "restart"),
		r.Outage.Round(time.Millisecond), r.Since.Format(time.DateTime))
}

func brokerPhase(s chainStatus) node.Phase {
	if s.brokerAnswers {
		return node.PhaseRunning
	}
	return node.PhaseGone
}

func brokerDetail(b *node.Broker) string {
	detail := fmt.Sprintf("process %d, since %s", b.Process.PID, b.Since.Format(time.DateTime))
	if b.Restarts > 0 {
		detail += ", " + count(b.Restarts, "restart")
	}
	return detail
}

func endedText(f node.FunctionStatus) string {
	if f.Error != "" {
		return f.Error
	}
	return fmt.Sprintf("exit status %d", f.Exit)
}

// conditionText is a chain's condition with its internal faults.
func conditionText(s chainStatus) string {
	text := string(s.Condition)
	if s.Condition == node.Up && len(s.Functions) > 0 && !s.Supervised {
		text += ", supervisor dead: dray down " + s.Chain + ", then dray up"
	}
	wrong := 0
	for _, f := range s.Functions {
		if f.Phase == node.PhaseFailed || f.Phase == node.PhaseRestarting || f.Phase == node.PhaseGone {
			wrong++
		}
	}
	if wrong > 0 {
		text += fmt.Sprintf(", but %s not running", count(wrong, "function"))
	}
	dead := 0
	for _, l := range s.Links {
		if l.Error != "" {
			dead++
		}
	}
	if dead > 0 {
		text += fmt.Sprintf(", but %s not whole", count(dead, "link"))
	}
	return text
}

// orEmpty is the text after a lead; empty if there is no text.
func orEmpty(lead, text string) string {
	if text == "" {
		return ""
	}
	return lead + text
}
