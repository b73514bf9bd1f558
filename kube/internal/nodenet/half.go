// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// half is a half of a link as it is in the kernel.
type half struct {
	ns     *os.File
	mtu    int
	hub    bool             // it has a bridge
	vni    int              // 0: it has no tunnel
	tunnel net.HardwareAddr // of the tunnel's end
	// plugged are the namespaces of pods in which this server has seen the interface of an end.
	plugged map[int]string
}

func (h *half) at() host.Netns { return host.OfFile(h.ns) }

// is reports whether the half can stay for what is wanted.
func (h *half) is(want Half) bool {
	if want.MTU != h.mtu || h.hub != (len(want.Ports) > 0) {
		return false
	}
	return h.hub || h.vni == 0 || bytes.Equal(h.tunnel, want.MAC.HardwareAddr())
}

// adopt reads a half that an earlier server made.
func adopt(ns *os.File) (*half, error) {
	h := &half{ns: ns}
	names, err := h.at().Interfaces()
	if err != nil {
		return nil, err
	}
	if h.hub = slices.Contains(names, hub); h.hub {
		state, err := h.at().ReadLink(hub)
		if err != nil {
			return nil, err
		}
		h.mtu = state.MTU
	}
	if slices.Contains(names, Device) {
		return h, h.adoptTunnel()
	}
	if !h.hub {
		return nil, errors.New("it has neither a bridge nor a tunnel")
	}
	return h, nil
}

func (h *half) adoptTunnel() error {
	state, err := h.at().ReadLink(Device)
	if err == nil {
		h.vni, err = h.at().ReadVNI(Device)
	}
	h.tunnel = state.MAC
	if !h.hub {
		h.mtu = state.MTU
	}
	return err
}

// setTunnel makes the half have a tunnel, or none, as is wanted.
func (s *server) setTunnel(h *half, want Half) error {
	switch {
	case h.hub && want.Tunnel == TunnelNone:
		return h.closeTunnel()
	case h.vni == 0 && h.hub && want.Tunnel == TunnelKept:
		return nil
	case h.vni == 0:
		if err := s.openTunnel(h, want); err != nil {
			return err
		}
	}
	if want.Peer == nil {
		return nil
	}
	return h.at().Forward(Device, want.Peer.MAC.HardwareAddr(), want.Peer.end())
}

func (h *half) closeTunnel() error {
	if err := h.at().RemoveLink(Device); err != nil {
		return err
	}
	h.vni = 0
	return nil
}

// vniTries bounds the search for a number that no other tunnel of the node has.
const vniTries = 8

// openTunnel makes the end of a tunnel in a half. Each node numbers what it
// receives by itself, at random: numbers need no agreement, and are hard to guess.
func (s *server) openTunnel(h *half, want Half) error {
	if err := h.closeTunnel(); err != nil { // one that was made in part
		return err
	}
	mac, vni, err := want.MAC.HardwareAddr(), 0, error(unix.EEXIST)
	for try := 0; try < vniTries && errors.Is(err, unix.EEXIST); try++ {
		vni = 1 + rand.IntN(1<<24-1)
		err = host.CreateVxlan(host.Vxlan{
			Iface:    host.Iface{Netns: h.at(), Name: Device, MAC: mac, MTU: want.MTU},
			Underlay: host.HostNetns, Device: s.device, Local: s.o.Addr, VNI: vni, Port: UDPPort,
		})
	}
	if err == nil {
		err = h.at().NoOwnIPv6(Device)
	}
	if err == nil && h.hub {
		err = h.at().SetMaster(Device, hub)
	}
	if err == nil {
		err = h.at().SetUp(Device)
	}
	if err == nil {
		h.vni, h.tunnel = vni, mac
	}
	return err
}

// deviceOf is the interface of this namespace that has an address.
func deviceOf(addr netip.Addr) (string, error) {
	if !addr.Is4() {
		return "", fmt.Errorf("the address of this node is %s: tunnels need an IPv4 address", addr)
	}
	name, err := host.HostNetns.LinkWith(addr)
	if err == nil && name == "" {
		err = fmt.Errorf("no interface has the node's address %s: dray-net needs hostNetwork", addr)
	}
	return name, err
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
