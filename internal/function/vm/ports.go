// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/function/guest/wire"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
)

// tapPrefix begins the names of the sandbox's taps.
const tapPrefix = "dray-tap"

// port is a guest interface, or the device of an application there.
type port struct {
	name       string
	mac        net.HardwareAddr
	mtu        int // bytes of L3 packet
	addrs      []netip.Prefix
	neighbours []dpdk.Neighbour
	// Packets pass one of these: a tap, or the socket of a vhost-user device. The tap
	// is joined to the sandbox interface with the port's name, or is that interface
	// itself (macvtap).
	tap, socket string
	macvtap     bool
	// slot is the device's slot on the guest's bus if it is an application's; 0: it is
	// an interface.
	slot int
}

// readPorts lists the interfaces plumbed into the sandbox, then the devices that
// switches reach directly.
func readPorts(s runtime.Spec) ([]port, error) {
	ns := s.Netns()
	names, err := ns.Interfaces()
	if err != nil {
		return nil, err
	}
	var ports, devices []port
	for _, name := range names {
		if strings.HasPrefix(name, tapPrefix) {
			continue // of a guest that is ending
		}
		state, err := ns.ReadLink(name)
		if err != nil {
			return nil, err
		}
		p := port{name: name, mac: state.MAC, mtu: state.MTU, addrs: state.Addrs, tap: name, macvtap: state.Kind == host.LinkKindMacvtap}
		if !p.macvtap {
			p.tap = fmt.Sprintf("%s%d", tapPrefix, len(ports))
		}
		ports = append(ports, p)
	}
	for _, v := range s.Vdevs {
		if v.Interface == nil {
			continue
		}
		p := port{name: v.Port, mtu: v.Interface.MTU, neighbours: v.Interface.Neighbours, socket: filepath.Join(v.Dir, v.Interface.Socket)}
		if p.mac, err = net.ParseMAC(v.Interface.MAC); err != nil {
			return nil, fmt.Errorf("port %s: %w", v.Port, err)
		}
		if v.Interface.IP.IsValid() {
			p.addrs = []netip.Prefix{v.Interface.IP}
		}
		if !isDevice(s, v.Port) {
			ports = append(ports, p)
			continue
		}
		if p.slot, err = s.MachineSlot(v.Port); err != nil {
			return nil, err
		}
		devices = append(devices, p)
	}
	return append(ports, devices...), nil
}

// nativePorts are the ports that libdray opens in the guest.
func nativePorts(s runtime.Spec) []guest.Port {
	var ports []guest.Port
	for _, p := range s.Function.Ports {
		if p.Face != chain.FaceNative {
			continue
		}
		g := guest.Port{Name: p.Name, Socket: filepath.Join(s.PortsDir(), p.Name)}
		for range guest.PortWindows {
			g.Windows = append(g.Windows, guest.PortWindows*len(ports)+len(g.Windows))
		}
		ports = append(ports, g)
	}
	return ports
}

// isDevice reports whether a port is an application's device.
func isDevice(s runtime.Spec, name string) bool {
	return slices.ContainsFunc(s.Function.Ports, func(p chain.Port) bool { return p.Name == name && p.Face == chain.FaceDPDK })
}

// joinTap bridges the tap and the port's interface.
func joinTap(ns host.Netns, p port) error {
	if err := ns.SetMTU(p.tap, p.mtu); err != nil {
		return err
	}
	if err := ns.SetUp(p.tap); err != nil {
		return err
	}
	return ns.Join(p.name, p.tap)
}

// connect joins each port to its separate tap, if it has one, and configures the guest's
// interfaces.
func connect(ctx context.Context, s runtime.Spec, ports []port) error {
	for _, p := range ports {
		if p.tap == "" || p.macvtap {
			continue
		}
		if err := joinTap(s.Netns(), p); err != nil {
			return err
		}
	}
	if contained(s) {
		if err := prepareContainer(ctx, s); err != nil {
			return err
		}
	}
	var errs strings.Builder
	code, err := guest.Run(ctx, guestDir(s), guest.Command{
		Request: wire.Request{Argv: []string{"/bin/sh", "-e"}, Env: s.Environ(), Dir: "/"},
		Stdin:   strings.NewReader(deviceScript(ports, s.Function.OwnPages()) + script(ports)), Stderr: &errs,
	})
	if err == nil && code != 0 {
		err = fmt.Errorf("set up the guest's ports: status %d: %s", code, strings.TrimSpace(errs.String()))
	}
	return err
}

// prepareContainer makes the container's namespaces in the guest. The container then
// has the guest's interfaces.
func prepareContainer(ctx context.Context, s runtime.Spec) error {
	var errs strings.Builder
	code, err := guest.Run(ctx, guestDir(s), guest.Command{Request: request(s, wire.Prepare, []string{"container"}), Stderr: &errs})
	if err == nil && code != 0 {
		err = fmt.Errorf("status %d: %s", code, strings.TrimSpace(errs.String()))
	}
	if err != nil {
		return fmt.Errorf("prepare the container in the guest: %w", err)
	}
	return nil
}

// script configures the guest's interfaces. The kernel numbers them in bus order.
func script(ports []port) string {
	var b strings.Builder
	b.WriteString("ip link set lo up\n")
	ports = slices.DeleteFunc(slices.Clone(ports), func(p port) bool { return p.slot > 0 })
	for i := range ports {
		// A port's name may equal another interface's old name.
		fmt.Fprintf(&b, "ip link set dev eth%d name dray-nic%d\n", i, i)
	}
	for i, p := range ports {
		fmt.Fprintf(&b, "ip link set dev dray-nic%d name %s mtu %d\nip link set dev %s up\n", i, p.name, p.mtu, p.name)
		for _, a := range p.addrs {
			if a.Addr().IsLinkLocalUnicast() && a.Addr().Is6() {
				continue // the guest's kernel derives the same from the same MAC address
			}
			fmt.Fprintf(&b, "ip addr add %s dev %s%s\n", a, p.name, noDAD(a))
		}
		for _, n := range p.neighbours {
			fmt.Fprintf(&b, "ip neigh replace %s lladdr %s dev %s\n", n.IP, n.MAC, p.name)
		}
	}
	return b.String()
}

// noDAD makes an IPv6 address usable at once.
func noDAD(a netip.Prefix) string {
	if a.Addr().Is6() {
		return " nodad"
	}
	return ""
}
