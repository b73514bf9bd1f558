// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
)

// OfPaths is the plan with its paths in place of its links: each as one link between the
// path's two ends, to be measured and judged like a link.
func (p *Plan) OfPaths() *Plan {
	paths := *p
	paths.Links, paths.Paths = nil, nil
	for _, path := range p.Paths {
		paths.Links = append(paths.Links, p.pathLink(path))
	}
	return &paths
}

func (p *Plan) pathLink(path Path) Link {
	first, last := path.Steps[0], path.Steps[len(path.Steps)-1]
	l := Link{
		Name: path.Name, Ends: []End{p.End(first.Link, first.Out), p.End(last.Link, last.In)},
		Traffic: chain.TrafficUDP, MTU: slices.Min(p.room(path)), Load: path.Load, Evidence: path.Evidence, Requires: path.Requires,
		Course: &Course{
			Through: path.Through(), Forward: path.Directions == chain.DirectionsForward,
			Next: [2]End{p.End(first.Link, first.In), p.End(last.Link, last.Out)}, GTPU: path.GTPU,
		},
	}
	var ways []string
	for _, s := range path.Steps {
		over := p.Link(s.Link)
		ways = append(ways, over.Transport)
		l.Hosts = append(l.Hosts, over.Hosts...)
	}
	if path.GTPU != nil {
		// As long in both directions, without what a tunnel adds.
		l.Frame = l.MTU + ethernet + checksum
	}
	slices.Sort(l.Hosts)
	l.Hosts = slices.Compact(l.Hosts)
	l.Transport = strings.Join(ways, " + ")
	return l
}

// End is a port as one of a planned link's ends.
func (p *Plan) End(link string, e chain.End) End {
	for _, end := range p.Link(link).Ends {
		if end.Function == e.Function && end.Port == e.Port {
			return end
		}
	}
	return End{}
}
