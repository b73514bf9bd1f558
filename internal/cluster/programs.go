// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/chain"
)

// Programs in draygen's image, besides draygen itself, and what starts one on a device of DPDK.
const (
	draygenDPDKPath = "/usr/bin/draygen-dpdk"
	iperf3Path      = "/usr/bin/iperf3"
	dpdkStarter     = "/run/dray/bin/dray-eal"
)

// device is the only one of a program on a device of DPDK.
const device = "0"

// programs finds out what can run in the pods of a copy. Each pod is asked once for each program.
type programs struct {
	k     *Kubectl
	s     *StandIn
	known map[string]instrument.FarProgram
}

// endpoints are the ends of a plan's links as instruments see them, by name. as is the state of the copy.
func (p *programs) endpoints(ctx context.Context, planned *plan.Plan, as *Chain) (map[string]instrument.Endpoint, error) {
	all := map[string]instrument.Endpoint{}
	for _, l := range planned.Links {
		for _, at := range as.Link(l.Name).Ends {
			i := slices.IndexFunc(l.Ends, func(e plan.End) bool { return e.String() == at.Name() })
			if i < 0 {
				return nil, fmt.Errorf("link %s of chain %s has no end %s", l.Name, as.Name(), at.Name())
			}
			e := l.Ends[i]
			end := p.endpoint(ctx, l, e, at)
			if fleet.OwnDevice(e) {
				end.Device = device
			} else if missing := end.Far.Programs["draygen"].Missing; missing != nil {
				return nil, missing
			}
			all[e.String()] = end
		}
	}
	return all, ctx.Err()
}

// pathEnds finds the ends of paths as instruments see them. as is the state of the copy.
func (p *programs) pathEnds(ctx context.Context, paths *plan.Plan, as *Chain) (func(plan.End) (instrument.Endpoint, error), error) {
	all := map[string]instrument.Endpoint{}
	for _, l := range paths.Links {
		for _, e := range l.Ends {
			end := p.endpoint(ctx, l, e, as.anEnd(e.Function))
			if missing := end.Far.Programs["draygen"].Missing; missing != nil {
				return nil, missing
			}
			all[e.String()] = end
		}
	}
	return func(e plan.End) (instrument.Endpoint, error) { return all[e.String()], nil }, ctx.Err()
}

func (p *programs) endpoint(ctx context.Context, l plan.Link, e plan.End, at End) instrument.Endpoint {
	return instrument.Endpoint{
		Name: e.String(), IP: e.IP.Addr(), MAC: string(e.MAC), MTU: e.MTU, Port: e.Port,
		Native: e.Face == chain.FaceNative, Far: p.far(ctx, l, e, at),
	}
}

// far is how to measure at an end of a link, in its pod.
func (p *programs) far(ctx context.Context, l plan.Link, e plan.End, at End) *instrument.Far {
	f := &instrument.Far{
		Machine: at.Node, Programs: map[string]instrument.FarProgram{},
		Command: func(argv []string) *exec.Cmd {
			return p.k.command(context.Background(), p.s.exec(at.Pod, argv...)...)
		},
	}
	if fleet.OwnDevice(e) {
		one := p.find(ctx, at.Pod, draygenDPDKPath)
		one.Argv = []string{dpdkStarter, "--only", e.Port, draygenDPDKPath}
		f.Programs["draygen-dpdk"], f.StartsFirst = one, l.Ends[fleet.Listener(&l)].String() == e.String()
		return f
	}
	f.Programs["draygen"] = p.find(ctx, at.Pod, draygenPath)
	if l.Traffic == chain.TrafficTCP {
		f.Programs["iperf3"] = p.find(ctx, at.Pod, iperf3Path)
	}
	return f
}

// find is a program in a pod.
func (p *programs) find(ctx context.Context, pod, path string) instrument.FarProgram {
	key := pod + " " + path
	if one, known := p.known[key]; known {
		return one
	}
	one := instrument.FarProgram{Argv: []string{path}}
	text, err := answer(ctx, p.k.command(ctx, p.s.exec(pod, path, "--version")...))
	words := strings.Fields(string(text))
	switch {
	case err != nil && strings.Contains(err.Error(), path+": no such file"):
		one.Missing = fmt.Errorf("the image of draygen has no %s: build it on a machine with DPDK and iperf3 (make images)", path)
	case err != nil:
		one.Missing = fmt.Errorf("%s does not run in pod %s: %w", path, pod, err)
	case len(words) < 2:
		one.Missing = fmt.Errorf("%s in pod %s reports no version", path, pod)
	default:
		one.Version = words[1]
	}
	p.known[key] = one
	return one
}
