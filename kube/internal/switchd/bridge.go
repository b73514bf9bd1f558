// SPDX-License-Identifier: Apache-2.0

package switchd

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// under is the bridge of the tunnels.
const under = "br-phy"

// tunnelPort is the OpenFlow number of the port towards the other switch. An end's is one more than
// its number.
const tunnelPort = 3

// socket is the path at which Open vSwitch connects to the application of a port.
func (w *ovs) socket(port string) string { return filepath.Join(w.o.Run, "ports", port) }

// bridge are the arguments that make a bridge. secure: it forwards only by its flows.
func bridge(name string) []string {
	return []string{"--", "--may-exist", "add-br", name, "--", "set", "bridge", name, "datapath_type=dummy", "fail_mode=secure", "other_config:disable-in-band=true"}
}

// setUnder makes the bridge of the tunnels. It has the address of the interface, and sends all
// that the kernel would send through that.
func (w *ovs) setUnder(ctx context.Context, u *underlay) error {
	args := append(bridge(under), fmt.Sprintf("other_config:hwaddr=%q", u.mac), "--", "--may-exist", "add-port", under, w.o.Device,
		"--", "set", "Interface", w.o.Device, "ofport_request=1")
	if err := w.vsctl(ctx, args...); err != nil {
		return err
	}
	// With this prefix, it is the source of everything, as it is of all that the kernel sends.
	calls := [][]string{{"netdev-dummy/ip4addr", under, u.addr.String() + "/0"}, {"tnl/neigh/aging", longestMemory}}
	for _, r := range u.routes {
		call := []string{"ovs/route/add", r.to.String(), under}
		if r.via.IsValid() {
			call = append(call, r.via.String())
		}
		calls = append(calls, call)
	}
	for _, call := range calls {
		if err := w.appctl(ctx, call...); err != nil {
			return err
		}
	}
	return w.setFlows(ctx, under, []string{
		"in_port=LOCAL,actions=output:1", "in_port=1,arp,actions=LOCAL",
		fmt.Sprintf("in_port=1,udp,nw_dst=%s,tp_dst=%d,actions=LOCAL", u.addr, w.o.Port),
	})
}

// numbers are the OpenFlow numbers of a link's ports, by name.
func (e *entry) numbers() map[string]int {
	all := map[string]int{}
	for _, p := range e.Ports {
		all[e.portName(p.End)] = p.End + 1
	}
	if e.crosses() {
		all[e.tunnelName()] = tunnelPort
	}
	return all
}

// arguments are those of ovs-vsctl that make a link as it is wanted, whatever is there of it.
func (w *ovs) arguments(e *entry, u *underlay) []string {
	args, numbers := bridge(e.id()), e.numbers()
	port := func(name string, settings ...string) {
		args = append(args, "--", "--may-exist", "add-port", e.id(), name, "--", "set", "Interface", name, fmt.Sprintf("ofport_request=%d", numbers[name]))
		args = append(args, settings...)
	}
	for _, p := range e.Ports {
		name := e.portName(p.End)
		port(name, "type=dpdkvhostuserclient", "options:vhost-server-path="+w.socket(name), fmt.Sprintf("mtu_request=%d", e.MTU))
	}
	if e.crosses() {
		port(e.tunnelName(), "type=vxlan", "options:local_ip="+u.addr.String(), "options:remote_ip="+e.Peer.Addr.String(),
			fmt.Sprintf("options:in_key=%d", e.VNI), fmt.Sprintf("options:out_key=%d", e.Peer.VNI), fmt.Sprintf("options:dst_port=%d", w.o.Port))
	}
	for _, name := range []string{e.portName(0), e.portName(1), e.tunnelName()} {
		if numbers[name] == 0 {
			args = append(args, "--", "--if-exists", "del-port", e.id(), name)
		}
	}
	return args
}

// flows are all flows of a link: without flows it forwards nothing.
func flows(e *entry) []string {
	if e.Learning {
		return []string{"actions=NORMAL"} // it learns addresses, and floods unknown ones
	}
	ports := slices.Sorted(maps.Values(e.numbers()))
	if len(ports) < 2 {
		return nil
	}
	return []string{fmt.Sprintf("in_port=%d,actions=output:%d", ports[0], ports[1]), fmt.Sprintf("in_port=%d,actions=output:%d", ports[1], ports[0])}
}

// set makes a link as it is wanted.
func (w *ovs) set(ctx context.Context, e *entry, u *underlay) error {
	if err := w.vsctl(ctx, w.arguments(e, u)...); err != nil {
		return err
	}
	if err := w.setFlows(ctx, e.id(), flows(e)); err != nil {
		return err
	}
	return w.checkPorts(ctx, e)
}

// checkPorts checks that the switch has every port: if it cannot open one, ovs-vsctl still succeeds.
func (w *ovs) checkPorts(ctx context.Context, e *entry) error {
	for name, number := range e.numbers() {
		out, err := w.tool(ctx, "", "ovs-vsctl", "--db="+w.database(), "get", "Interface", name, "ofport", "error")
		if err != nil {
			return err
		}
		if got, reason, _ := strings.Cut(out, "\n"); got != strconv.Itoa(number) {
			return fmt.Errorf("ovs-vswitchd does not forward on port %s (%s): %s", name, got, reason)
		}
	}
	return nil
}

// bridges are the links that Open vSwitch has, by id.
func (w *ovs) bridges(ctx context.Context) (map[string]bool, error) {
	out, err := w.tool(ctx, "", "ovs-vsctl", "--db="+w.database(), "list-br")
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for _, name := range strings.Fields(out) {
		if name != under {
			all[name] = true
		}
	}
	return all, nil
}
