// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/binary"
	"net/netip"

	"github.com/drayage/dray/internal/spec/chain"
)

// warnOfPaths names what keeps packets from passing a path, though it can be built.
func (p *planner) warnOfPaths() {
	for i := range p.plan.Paths {
		path := &p.plan.Paths[i]
		p.warnOfIdle(path)
		if path.GTPU != nil && path.GTPU.Tunnels > 1 {
			p.warnOfUsers(path)
		}
	}
}

// warnOfIdle names the functions of a path that run no program. The kernel forwards
// between interfaces, but not between ports that only a program has.
func (p *planner) warnOfIdle(path *Path) {
	for i := range path.Through() {
		in, out := path.Steps[i].In, path.Steps[i+1].Out
		f := p.chain.Function(in.Function)
		idle := len(f.Command) == 0 && f.Image == "" && (f.Runtime == chain.RuntimeProcess || f.Runtime == chain.RuntimeRunc || f.Runtime == "")
		for _, port := range []*chain.Port{f.Port(in.Port), f.Port(out.Port)} {
			if idle && port.Face != chain.FaceNetdev {
				p.warn("path %s: function %s has no command, and no packets pass its %s port %s without a program; give it one", path.Name, f.Name, port.Face, port.Name)
				break
			}
		}
	}
}

// warnOfUsers compares the addresses of the users of tunnels with the subnet of the port
// of the first.
func (p *planner) warnOfUsers(path *Path) {
	end := path.From
	if path.GTPU.At == chain.SideTo {
		end = path.To
	}
	ip := p.addressOf(end)
	if !ip.Addr().Is4() {
		return
	}
	first := ip.Addr().As4()
	n := uint64(binary.BigEndian.Uint32(first[:])) + uint64(path.GTPU.Tunnels) - 1
	last := netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	if n >= 1<<32 || !ip.Contains(last) {
		p.warn("path %s: the addresses of its %d users count up from %s, the address of %s, beyond the subnet %s; give the port a shorter prefix, or lower tunnels",
			path.Name, path.GTPU.Tunnels, ip.Addr(), end, ip.Masked())
	}
}

// addressOf is the planned address of a port.
func (p *planner) addressOf(end chain.End) netip.Prefix {
	for _, l := range p.plan.Links {
		for _, e := range l.Ends {
			if e.Function == end.Function && e.Port == end.Port {
				return e.IP
			}
		}
	}
	return netip.Prefix{}
}
