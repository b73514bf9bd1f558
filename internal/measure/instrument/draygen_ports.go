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

// draygenDPDK is draygen with the devices of DPDK, which it takes from the
// system's libraries.
var draygenDPDK = tool{name: "draygen-dpdk", own: true, ask: draygen.ask, version: draygen.version}

// dpdkPatience is how long a program may wait at a dpdk port for its peer: EAL
// takes a second to start, and a switch a second to connect again.
const dpdkPatience = 20 * time.Second

// machinePatience is that in a virtual machine, where EAL loads its drivers from the
// host's files: emulated beside busy programs that was seen to take half a minute.
const machinePatience = 2 * time.Minute

// dpdkWait is how long programs at the ends of a link wait for each other.
func dpdkWait(from, to Endpoint) time.Duration {
	if from.machine() || to.machine() {
		return machinePatience
	}
	return dpdkPatience
}

// dpdk reports whether a DPDK application drives the port.
func (e Endpoint) dpdk() bool { return e.Device != "" }

// framed reports whether the generator itself makes the frames at this port: it
// is no interface, whose kernel does that.
func (e Endpoint) framed() bool { return e.Native || e.dpdk() }

// genTool is the generator for a port.
func genTool(e Endpoint) tool {
	if e.dpdk() {
		return draygenDPDK
	}
	return draygen
}

// genPort is the generator's own end of a framed port, which waits so long for its
// peer if it is a device.
func genPort(e Endpoint, wait time.Duration) ([]string, error) {
	if !e.dpdk() {
		return []string{"--port", "dray:" + e.Port}, nil
	}
	for _, arg := range e.EAL {
		if arg == "" || strings.ContainsAny(arg, " \t\n") {
			return nil, fmt.Errorf("port %s: %q cannot be passed to EAL: choose another state directory with DRAY_STATE", e.Name, arg)
		}
	}
	return []string{"--port", "dpdk:" + e.Device, "--eal", strings.Join(e.EAL, " "), "--mtu", strconv.Itoa(e.MTU),
		"--peer-timeout", strconv.FormatFloat(wait.Seconds(), 'f', -1, 64) + "s"}, nil
}

// secondary reports whether the device's application needs another process of
// DPDK, which has the memory of both, to run before it.
func (e Endpoint) secondary() bool { return slices.Contains(e.EAL, "--proc-type=secondary") }

// genOpened reports whether a sender has opened its port.
func genOpened(p *program) bool { return strings.Contains(string(p.out.bytes()), `"event":"open"`) }

// genPorts are the sink's and the sender's ports, and how the sender addresses
// the sink.
func genPorts(from, to Endpoint) (sink, source, target []string, err error) {
	dst, err := genAddress(from, to)
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
	case to.framed():
		source = []string{"--port", "packet:" + from.Port}
	default:
		source = []string{"--port", "udp:" + netip.AddrPortFrom(from.scoped(from.IP), 0).String()}
	}
	return sink, source, genTarget(from, to, dst), err
}

// genAddress is where packets go to. It is not valid if a port with one peer
// needs none.
func genAddress(from, to Endpoint) (netip.AddrPort, error) {
	switch {
	case !to.framed():
		ports, err := freePorts(to, 1)
		if err != nil {
			return netip.AddrPort{}, err
		}
		return netip.AddrPortFrom(from.scoped(to.IP), ports[0]), nil
	case to.IP.IsValid() && (ipHeader(to.IP) == ipv6Header || from.dpdk()):
		return netip.AddrPortFrom(to.IP, genDiscard), nil
	case !from.framed():
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), genDiscard), nil
	}
	return netip.AddrPort{}, nil
}

// genTarget is how the sender addresses the sink. A native port has one peer,
// which needs no address but says of what family the packets are. Where the
// other end is an interface, its kernel has to take the packets for its own, or,
// the other way round, has to be kept from asking for an address that nobody
// answers for. Beyond a dpdk port there may be a switch, and behind it a kernel.
func genTarget(from, to Endpoint, dst netip.AddrPort) []string {
	var target []string
	if dst.IsValid() {
		target = append(target, "--to", dst.String())
	}
	if from.dpdk() && dst.IsValid() && from.IP.IsValid() {
		target = append(target, "--from", from.IP.String())
	}
	if to.MAC != "" && (from.dpdk() || to.dpdk() && from.framed() || from.framed() != to.framed()) {
		target = append(target, "--to-mac", to.MAC)
	}
	return target
}

// genBusy finds what draygen says where another program has a native port open.
var genBusy = regexp.MustCompile(`draygen: dray:[^ ]+: the port is open elsewhere`)

// genNoDevice finds what it says where the device of a port did not come up.
var genNoDevice = regexp.MustCompile(`draygen: (EAL did not start|dpdk:)`)

// genError explains what a user can mend.
func genError(err error, from, to Endpoint) error {
	busy := (from.Native || to.Native) && genBusy.MatchString(err.Error())
	none := (from.dpdk() || to.dpdk()) && genNoDevice.MatchString(err.Error())
	switch {
	case busy:
		return fmt.Errorf("%w: where the function's own command has the port open, stop it to measure, or read what the port tells of its own traffic with `dray status` or `dray top`", err)
	case none:
		return fmt.Errorf("%w: where the function's own command drives the device, nothing else can: stop it to measure", err)
	}
	return err
}
