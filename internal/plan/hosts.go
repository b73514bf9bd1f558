// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// planHosts copies the simulated hosts into the plan, and reports what their underlay
// needs and the kernel lacks.
func (p *planner) planHosts() {
	p.plan.Hosts = p.chain.Hosts
	if p.chain.Hosts == nil {
		return
	}
	u := p.chain.Hosts.Underlay
	if u.Rate > 0 {
		p.checkUnderlayQdisc("tbf", "rate", u.Rate.String(), "leave out the underlay's rate")
	}
	if u.Delay > 0 {
		p.checkUnderlayQdisc("netem", "delay", u.Delay.String(), "leave out the underlay's delay")
	}
}

func (p *planner) checkUnderlayQdisc(kind, field, value, otherwise string) {
	item := inventory.Find(p.inv.Qdiscs, kind)
	if item != nil && item.Status != inventory.Missing {
		return
	}
	hosts := p.chain.Hosts
	p.violate(Violation{
		Subject:    "underlay",
		Constraint: field + " " + value,
		Reason:     "unsupported: this kernel has no sch_" + kind,
		Fix:        fmt.Sprintf("run it in a guest whose kernel has it: `dray lab --need %s -- dray …`; or %s", kind, otherwise),
		Pos:        at(hosts.Underlay.FieldPos, field, at(hosts.FieldPos, "underlay", hosts.Pos)),
		Hard:       true,
	})
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
func hostsText(h *chain.Hosts) string {
	names := strings.Join(h.Names, ", ")
	if !h.Lined() {
		return fmt.Sprintf("hosts %s are simulated on it; underlay: %s", names, underlayText(h.Underlay))
	}
	lines := "1 line"
	if len(h.Lines) > 1 {
		lines = fmt.Sprintf("%d lines", len(h.Lines))
	}
	return fmt.Sprintf("hosts %s are planned, not simulated; %s, mtu %d", names, lines, h.Underlay.MTU)
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
