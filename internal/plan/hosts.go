// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
)

// planHosts copies the simulated hosts into the plan, and reports what their underlay
// needs and the kernel lacks.
func (p *planner) planHosts() {
	p.plan.Hosts = p.chain.Hosts
	if p.chain.Hosts == nil {
		return
	}
	hosts, u := p.chain.Hosts, p.chain.Hosts.Underlay
	if hosts.Lined() {
		p.here(p.checkLines)
		return
	}
	pos := func(field string) parse.Position {
		return at(u.FieldPos, field, at(hosts.FieldPos, "underlay", hosts.Pos))
	}
	if u.Rate > 0 {
		p.checkShaper("tbf", "leave out the underlay's rate", Violation{Subject: "underlay", Constraint: "rate " + u.Rate.String(), Pos: pos("rate")})
	}
	if u.Delay > 0 {
		p.checkShaper("netem", "leave out the underlay's delay", Violation{Subject: "underlay", Constraint: "delay " + u.Delay.String(), Pos: pos("delay")})
	}
}

// checkLines reports what simulating the lines takes and this machine lacks.
func (p *planner) checkLines() {
	hosts := p.chain.Hosts
	if len(hosts.Names) > chain.MaxHosts {
		p.violate(Violation{
			Subject:    "hosts",
			Constraint: fmt.Sprintf("%d machines", len(hosts.Names)),
			Reason:     fmt.Sprintf("one machine simulates at most %d hosts", chain.MaxHosts),
			Fix:        "describe fewer of them",
			Pos:        at(hosts.FieldPos, "machines", hosts.Pos),
			Hard:       true,
		})
	}
	shaped := func(kind, otherwise string, constraint func(chain.HostLine) string) {
		for i, l := range hosts.Lines {
			if text := constraint(l); text != "" {
				p.checkShaper(kind, otherwise, Violation{Subject: lineName(hosts, i), Constraint: text, Pos: l.Pos})
				return
			}
		}
	}
	shaped("tbf", "leave out the lines' rate", func(l chain.HostLine) string {
		if l.Rate == 0 || l.SimulatedDelay() > 0 { // netem has a rate of its own
			return ""
		}
		return fmt.Sprintf("rate %v", l.Rate)
	})
	shaped("netem", "leave out the lines' delay and length", func(l chain.HostLine) string {
		if l.SimulatedDelay() == 0 {
			return ""
		}
		return fmt.Sprintf("delay %v", units.Duration(l.SimulatedDelay()))
	})
}

// checkShaper makes v a violation if the kernel lacks a kind of qdisc.
func (p *planner) checkShaper(kind, otherwise string, v Violation) {
	item := inventory.Find(p.inv.Qdiscs, kind)
	if item != nil && item.Usable() {
		return
	}
	v.Reason, v.Hard = "unsupported: this kernel has no sch_"+kind, true
	v.Fix = fmt.Sprintf("run it in a guest whose kernel has it: `dray lab --need %s -- dray …`; or %s", kind, otherwise)
	p.violate(v)
}

// crosses reports whether the link's ports are on different simulated hosts.
func (n *needs) crosses() bool { return len(n.hosts) > 1 }

// hostsObstacle limits tunnels to links between hosts, and vice versa.
func hostsObstacle(t *inventory.Transport, n *needs) *obstacle {
	switch {
	case n.crosses() && !t.Caps.Tunnel:
		return &obstacle{
			constraint: "hosts " + strings.Join(n.hosts, ", "),
			reason:     "joins only ports on one host",
			fix:        "use transport: auto, or put the link's functions on one host",
			pos:        n.field("transport"),
		}
	case !n.crosses() && t.Caps.Tunnel:
		return &obstacle{
			constraint: "ends on one host",
			reason:     "joins only ports on different hosts",
			fix:        "use transport: auto, or put the link's functions on different simulated hosts",
			pos:        n.field("transport"),
		}
	}
	return nil
}

// underlayMTUObstacle checks whether the underlay has room for the tunnel's headers.
func underlayMTUObstacle(_ *inventory.Transport, n *needs) *obstacle {
	if !n.crosses() || n.mtu+chain.VXLANOverhead <= n.underlay.MTU {
		return nil
	}
	most := n.underlay.MTU - chain.VXLANOverhead
	return &obstacle{
		constraint: fmt.Sprintf("mtu %d", n.mtu),
		reason:     fmt.Sprintf("carries packets of at most %d bytes over an underlay with mtu %d", most, n.underlay.MTU),
		fix:        fmt.Sprintf("lower the ports' mtu to %d, or raise the underlay's to %d", most, n.mtu+chain.VXLANOverhead),
		pos:        n.mtuPos,
	}
}

// latency is the transport's latency, plus the delay between the hosts for a tunnel.
func (e estimate) latency(percentile float64) figure {
	f := e.figures.latency(percentile)
	if e.crosses() && e.underlay.Delay > 0 && f.known() {
		f.value += float64(e.underlay.Delay)
		f.source += ", and the delay of " + e.via
	}
	return f
}

// bitrate is the rate at which the transport carries the link's traffic. The other
// traffic is no evidence.
func (e estimate) bitrate() figure {
	if e.traffic() != chain.TrafficTCP {
		return e.carried()
	}
	return e.tunnelled(e.tcpBitrate(), float64(e.mtu-e.ipHeader()-tcpHeader), float64(e.mtu+ethernet))
}

// carried is the same for the load, which is always datagrams.
func (e estimate) carried() figure {
	return e.tunnelled(e.udpBitrate(e.udpPayload()), e.udpPayload(), float64(e.frame()-checksum))
}

// tunnelled limits a bitrate to the payload rate of a tunnel's underlay.
func (e estimate) tunnelled(f figure, payload, frame float64) figure {
	if !e.crosses() || e.underlay.Rate == 0 || !f.known() {
		return f
	}
	limit := float64(e.underlay.Rate) * payload / (frame + chain.VXLANOverhead)
	return lesser(f, limit, fmt.Sprintf("payload through %s at %v", e.via, e.underlay.Rate))
}

// packetRate is the same for small frames, 4 bytes of which are a checksum that no
// tunnel carries.
func (e estimate) packetRate() figure {
	f := e.figures.packetRate()
	if !e.crosses() || e.underlay.Rate == 0 || !f.known() {
		return f
	}
	limit := float64(e.underlay.Rate) / 8 / float64(e.smallFrame()-checksum+chain.VXLANOverhead)
	return lesser(f, limit, fmt.Sprintf("%d-byte frames through %s at %v", e.smallFrame(), e.via, e.underlay.Rate))
}

func lesser(f figure, limit float64, source string) figure {
	if f.value <= limit {
		return f
	}
	return figure{limit, source}
}

// hostsText is the hosts and what joins them, on one line.
func (p *Plan) hostsText() string {
	h := p.Hosts
	names, joined := strings.Join(h.Names, ", "), "underlay: "+underlayText(h.Underlay)
	if h.Lined() {
		joined = fmt.Sprintf("1 line, mtu %d", h.Underlay.MTU)
	}
	if n := len(h.Lines); n > 1 {
		joined = fmt.Sprintf("%d lines, mtu %d", n, h.Underlay.MTU)
	}
	if len(p.Unsimulated) > 0 {
		return fmt.Sprintf("hosts %s are planned, and cannot be simulated on it; %s", names, joined)
	}
	return fmt.Sprintf("hosts %s are simulated on it; %s", names, joined)
}

// underlayText is the underlay on one line.
func underlayText(u chain.Underlay) string {
	text := "no stated rate"
	if u.Rate > 0 {
		text = u.Rate.String()
	}
	if u.Delay > 0 {
		text += fmt.Sprintf(", %v one way", u.Delay)
	}
	return fmt.Sprintf("%s, mtu %d", text, u.MTU)
}
