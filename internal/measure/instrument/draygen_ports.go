// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// draygenDPDK is draygen with DPDK devices, using the system's DPDK libraries.
var draygenDPDK = tool{name: "draygen-dpdk", own: true, ask: draygen.ask, version: draygen.version}

// dpdkPatience is how long a program may wait at a dpdk port for its peer: EAL
// takes a second to start, and a switch a second to reconnect.
const dpdkPatience = 20 * time.Second

// machinePatience is the same in a virtual machine, where EAL loads its drivers from
// the host's files: emulated next to busy programs that took up to half a minute.
const machinePatience = 2 * time.Minute

// dpdkWait is how long programs at a link's ends wait for each other.
func dpdkWait(from, to Endpoint) time.Duration {
	if from.machine() || to.machine() {
		return machinePatience
	}
	return dpdkPatience
}

// dpdk reports whether a DPDK application drives the port.
func (e Endpoint) dpdk() bool { return e.Device != "" }

// framed reports whether the generator itself makes this port's frames: no kernel
// interface does.
func (e Endpoint) framed() bool { return e.Native || e.dpdk() }

// genTool is a port's generator.
func genTool(e Endpoint) tool {
	if e.dpdk() {
		return draygenDPDK
	}
	return draygen
}

// genPort is the generator's own end of a framed port; a device waits this long
// for its peer.
func genPort(e Endpoint, wait time.Duration) ([]string, error) {
	if !e.dpdk() {
		return []string{"--port", "dray:" + e.Port}, nil
	}
	for _, arg := range e.EAL {
		if arg == "" || strings.ContainsAny(arg, " \t\n") {
			return nil, fmt.Errorf("port %s: %q cannot be passed to EAL: choose another state directory with DRAY_STATE", e.Name, arg)
		}
	}
	port := []string{"--port", "dpdk:" + e.Device}
	if e.Far == nil { // elsewhere, the program that starts draygen knows EAL's arguments
		port = append(port, "--eal", strings.Join(e.EAL, " "))
	}
	return append(port, "--mtu", strconv.Itoa(e.MTU), "--peer-timeout", strconv.FormatFloat(wait.Seconds(), 'f', -1, 64)+"s"), nil
}

// secondary reports whether the device's application needs another DPDK process,
// which holds both ends' memory, to run first.
func (e Endpoint) secondary() bool { return slices.Contains(e.EAL, "--proc-type=secondary") }

// opensFirst reports whether a sender must open its port before the sink can start.
func (e Endpoint) opensFirst(to Endpoint) bool {
	return to.secondary() && e.dpdk() && !e.secondary() || e.Far != nil && e.Far.StartsFirst
}

// boundedDevices bounds what starts draygen at a device of another machine, since it may wait for the
// other end for ever.
func (s clientServer) boundedDevices() clientServer {
	longest := s.timeout + s.limit()
	if s.from.dpdk() {
		s.client = s.from.bounded(longest, s.client)
	}
	if s.to.dpdk() {
		s.server = s.to.bounded(longest, s.server)
	}
	return s
}

// genOpened reports whether a sender has opened its port.
func genOpened(p *program) bool { return strings.Contains(string(p.out.bytes()), `"event":"open"`) }

// unprivileged reports whether a program at the port, an interface, may send no frames of its
// own. Then the kernel must know the address to which it sends.
func (e Endpoint) unprivileged() bool { return !e.framed() && e.Far != nil }

// genPorts are the sink's and the sender's ports, and the sender's address
// options for the sink. With a next hop, the sender makes frames at an interface too:
// the route to the sink need not be known there.
func genPorts(from, to Endpoint, nextHop string) (sink, source, target []string, err error) {
	dst, err := genAddress(from, to, nextHop != "")
	if err != nil {
		return nil, nil, nil, err
	}
	if to.framed() {
		sink, err = genPort(to, dpdkWait(from, to))
	} else {
		sink = []string{"--port", "udp:" + netip.AddrPortFrom(to.scoped(to.IP), dst.Port()).String()}
	}
	if err != nil {
		return nil, nil, nil, err
	}
	switch {
	case from.framed():
		source, err = genPort(from, dpdkWait(from, to))
	case (to.framed() || nextHop != "") && from.Far == nil:
		source = []string{"--port", "packet:" + from.Port}
	default:
		source = []string{"--port", "udp:" + netip.AddrPortFrom(from.scoped(from.IP), 0).String()}
	}
	return sink, source, genTarget(from, to, dst, nextHop), err
}

// genAddress is the packets' destination. It is invalid if a port with one peer
// needs none. Routers on the way need one.
func genAddress(from, to Endpoint, routed bool) (netip.AddrPort, error) {
	switch {
	case !to.framed() && to.Far != nil:
		return netip.AddrPortFrom(from.scoped(to.IP), farPort()), nil
	case !to.framed():
		ports, err := freePorts(to, 1)
		if err != nil {
			return netip.AddrPort{}, err
		}
		return netip.AddrPortFrom(from.scoped(to.IP), ports[0]), nil
	case from.unprivileged() && !to.IP.IsValid():
		return netip.AddrPort{}, fmt.Errorf("%s has no IP address to which a program at the interface %s could send: give the port one", to.Name, from.Name)
	case from.unprivileged():
		return netip.AddrPortFrom(from.scoped(to.IP), genDiscard), nil
	case to.IP.IsValid() && (ipHeader(to.IP) == ipv6Header || from.dpdk() || routed):
		return netip.AddrPortFrom(to.IP, genDiscard), nil
	case !from.framed():
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), genDiscard), nil
	}
	return netip.AddrPort{}, nil
}

// genTarget is the sender's address options for the sink. A native port has one
// peer, which needs no address, only an IP family. If the other end is an
// interface, its kernel must accept the packets as its own. In the opposite
// direction the kernel must not ask for an address that nothing answers for.
// Beyond a dpdk port there may be a switch, and behind it a kernel.
func genTarget(from, to Endpoint, dst netip.AddrPort, nextHop string) []string {
	var target []string
	if dst.IsValid() {
		target = append(target, "--to", dst.String())
	}
	if from.dpdk() && dst.IsValid() && from.IP.IsValid() {
		target = append(target, "--from", from.IP.String())
	}
	if nextHop != "" {
		return append(target, "--to-mac", nextHop)
	}
	if to.MAC != "" && !from.unprivileged() && (from.dpdk() || to.dpdk() && from.framed() || from.framed() != to.framed()) {
		target = append(target, "--to-mac", to.MAC)
	}
	return target
}

// genBusy matches draygen's message if another program has a native port open.
var genBusy = regexp.MustCompile(`draygen: dray:[^ ]+: the port is open elsewhere`)

// genNoDevice matches its message if a port's device did not come up.
var genNoDevice = regexp.MustCompile(`draygen: (EAL did not start|dpdk:)`)

// genError explains errors that a user can fix.
func genError(err error, from, to Endpoint) error {
	busy := (from.Native || to.Native) && genBusy.MatchString(err.Error())
	none := (from.dpdk() || to.dpdk()) && genNoDevice.MatchString(err.Error())
	switch {
	case busy:
		return fmt.Errorf("%w: if the function's own command has the port open, stop it to measure; `dray status` and `dray top` show that command's own traffic", err)
	case none:
		return fmt.Errorf("%w: if the function's own command drives the device, stop it to measure", err)
	}
	return err
}
