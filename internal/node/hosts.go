// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/underlay"
	"github.com/drayage/dray/internal/plan"
)

func (l *Live) underlay(p *plan.Plan) underlay.Spec {
	spec := underlay.Spec{Chain: l.Chain.Name, Dir: filepath.Join(l.dir, "hosts"), Hosts: *p.Hosts}
	if p.Hosts.Lined() {
		spec.First = plan.FirstLines(p.Hosts)
	}
	return spec
}

// createHosts makes the chain's simulated hosts and their connections.
func (l *Live) createHosts(ctx context.Context, runner *step.Runner, p *plan.Plan) error {
	if p.Hosts == nil {
		return nil
	}
	build := l.underlay(p).Build()
	if err := runner.Run(ctx, build.Steps); err != nil {
		return fmt.Errorf("simulated hosts: %w", err)
	}
	l.State.Underlay = build.Report
	return nil
}

// putOnHosts fills in the places of a tunnel's ends. number is the link's move
// number: during a move there are two tunnels.
func (l *Live) putOnHosts(spec *transport.Spec, pl plan.Link, number int) error {
	if !pl.Tunnel() {
		return nil
	}
	under := l.underlay(l.State.Plan)
	for _, name := range pl.Hosts {
		h, err := under.At(name)
		if err != nil {
			return err
		}
		spec.Hosts = append(spec.Hosts, h)
	}
	for i, e := range spec.Ends {
		if f := l.Chain.Function(e.Function); f != nil {
			spec.Ends[i].Host = f.Host
		}
	}
	spec.VNI = pl.VNI + number*len(l.Chain.Links)
	return nil
}
