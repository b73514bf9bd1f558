// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
)

// makeHub makes the bridge of a half. It floods: a link has two ends, so whatever comes
// from one is for the other, and no address that a pod invents is remembered.
func (h *half) makeHub() error {
	if err := host.CreateHub(host.Iface{Netns: h.at(), Name: hub, MTU: h.mtu}); err != nil {
		return err
	}
	return errors.Join(h.at().NoOwnIPv6(hub), h.at().SetUp(hub))
}

// setPorts makes the ports of a half, and removes those that are no longer wanted. It
// notes what is wrong with each.
func (s *server) setPorts(h *half, want Half, m *Made) {
	m.Faults, m.Wrong, m.Again = map[int]string{}, map[int]string{}, map[int]string{}
	for end := range 2 {
		i := slices.IndexFunc(want.Ports, func(p Port) bool { return p.End == end })
		var err error
		switch {
		case i < 0:
			delete(h.plugged, end)
			err = h.at().RemoveLink(hubSide(end))
		case want.Ports[i].Interface == nil:
			err = h.setNative(want.Ports[i])
		case want.Ports[i].Interface.Netns != "":
			err = s.plug(h, want.Ports[i], m)
		}
		if err != nil {
			m.Faults[end] = err.Error()
		}
	}
}

// removePorts removes all ports of a half, also from pods.
func (h *half) removePorts() error {
	return errors.Join(h.at().RemoveLink(hubSide(0)), h.at().RemoveLink(hubSide(1)))
}

// setNative makes the port of an end that libdray opens: an interface in the half itself.
func (h *half) setNative(p Port) error {
	own := host.Iface{Netns: h.at(), Name: PortDevice(p.End), MAC: p.MAC.HardwareAddr(), MTU: h.mtu, Queues: p.Queues}
	state, err := h.joined(p, own)
	if err == nil && !whole(state, own) {
		err = h.join(p, own, func() error { return own.Netns.NoOwnIPv6(own.Name) })
	}
	if err != nil {
		return err
	}
	return shape(own.Netns, own.Name, p.Shape)
}

// shape gives an interface its egress qdisc. nil: none.
func shape(ns host.Netns, name string, q *chain.Qdisc) error {
	if q == nil {
		return nil
	}
	return ns.SetTokenBucket(name, transport.HostQdisc(*q))
}

// plug gives a pod the interface of a port. It is complete once its other end is at the
// bridge, which comes last. What somebody has changed since is noted, and stays.
func (s *server) plug(h *half, p Port, m *Made) error {
	pod, err := s.podNetns(p.Interface.Netns)
	if err != nil {
		return fmt.Errorf("port %s: %w", p.Interface.Name, err)
	}
	defer pod.Close()
	own := host.Iface{Netns: host.OfFile(pod), Name: p.Interface.Name, MAC: p.MAC.HardwareAddr(), MTU: h.mtu, Queues: p.Queues}
	state, err := h.joined(p, own)
	if err != nil {
		return err
	}
	if whole(state, own) {
		if text := state.Differs(own, p.Interface.IP); text != "" {
			m.Wrong[p.End] = text
		}
		if err := setOffloads(own, p.Interface); err != nil { // an older version made the interface with others
			return err
		}
	} else {
		why, err := missing(state, own)
		if err == nil {
			err = h.join(p, own, func() error { return configure(own, p.Interface) })
		}
		if err != nil {
			return fmt.Errorf("interface %s of a pod: %w", own.Name, err)
		}
		if h.plugged[p.End] == p.Interface.Netns { // no new sandbox of the pod
			m.Again[p.End] = why
		}
		s.o.Log.Info("interface made", "interface", own.Name, "netns", p.Interface.Netns, "because", m.Again[p.End])
	}
	if h.plugged == nil {
		h.plugged = map[int]string{}
	}
	h.plugged[p.End] = p.Interface.Netns
	return shape(own.Netns, own.Name, p.Shape)
}

// joined is the interface of a port if that is where it should be, and its other end at the
// bridge; else nil.
func (h *half) joined(p Port, own host.Iface) (*host.LinkState, error) {
	near, err := linkIn(h.at(), hubSide(p.End))
	if near == nil || err != nil {
		return nil, err
	}
	far, err := linkIn(own.Netns, own.Name)
	if far == nil || err != nil {
		return nil, err
	}
	if near.Kind == "veth" && far.Kind == "veth" && near.Master > 0 && near.Peer == far.Index && far.Peer == near.Index {
		return far, nil
	}
	return nil, nil
}

// whole reports whether a port can stay. One with another MAC address may be of an earlier plan.
func whole(joined *host.LinkState, own host.Iface) bool {
	return joined != nil && bytes.Equal(joined.MAC, own.MAC)
}

// cutOff is what is wrong with an interface whose other end has left the bridge.
const cutOff = "is cut off from its link"

// missing is why a port that was whole is so no longer.
func missing(joined *host.LinkState, own host.Iface) (string, error) {
	if joined != nil {
		return joined.Differs(own, netip.Prefix{}), nil
	}
	far, err := linkIn(own.Netns, own.Name)
	if far != nil {
		return cutOff, err
	}
	return host.Absent, err
}

// linkIn is the state of an interface; nil if there is none.
func linkIn(ns host.Netns, name string) (*host.LinkState, error) {
	names, err := ns.Interfaces()
	if err != nil || !slices.Contains(names, name) {
		return nil, err
	}
	state, err := ns.ReadLink(name)
	if host.LinkGone(err) { // it has just ended with its peer's namespace
		return nil, nil
	}
	return &state, err
}

// join makes a port's veth pair, has its own end prepared, and joins the other one to the
// bridge. After an error nothing is left of it.
func (h *half) join(p Port, own host.Iface, prepare func() error) (err error) {
	at, near := h.at(), hubSide(p.End)
	if err := at.RemoveLink(near); err != nil { // what was made in part, or for an earlier sandbox of the pod
		return err
	}
	other, err := linkIn(own.Netns, own.Name)
	if err != nil {
		return err
	}
	if other != nil {
		return fmt.Errorf("the namespace has another interface of this name (%s): give the port another name", other.Kind)
	}
	if err := host.CreateVeth(host.Iface{Netns: at, Name: near, MTU: h.mtu, Queues: p.Queues}, own); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, at.RemoveLink(near))
		}
	}()
	for _, step := range []func() error{
		prepare,
		func() error { return own.Netns.SetUp(own.Name) },
		func() error { return at.NoOwnIPv6(near) },
		func() error { return at.SetUp(near) },
		func() error { return at.SetMaster(near, hub) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// setOffloads switches off what a native port at the other end does not take.
func setOffloads(own host.Iface, i *Interface) error {
	if i.Opposite == nil {
		return nil
	}
	features := []string{"tso", "gso", "tx-udp-segmentation"} // libdray takes frames of at most the MTU
	if i.Opposite.DPDK {
		features = append(features, "tx-checksum") // a DPDK application forwards packets as they are
	}
	for _, feature := range features {
		if err := own.Netns.SetOffload(own.Name, feature, false); err != nil {
			return err
		}
	}
	return nil
}

// configure gives the interface of a pod its address, before it is up. What is at its
// other end is not the pod's router.
func configure(own host.Iface, i *Interface) error {
	if err := own.Netns.RefuseRoutes(own.Name); err != nil {
		return err
	}
	if err := setOffloads(own, i); err != nil {
		return err
	}
	if i.IP.IsValid() {
		if err := own.Netns.AddAddr(own.Name, i.IP); err != nil {
			return err
		}
	}
	if i.Opposite != nil && i.Opposite.IP.IsValid() {
		return own.Netns.AddNeighbour(own.Name, i.Opposite.IP, i.Opposite.MAC.HardwareAddr())
	}
	return nil
}
