// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"slices"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/kube/internal/probe"
)

// spot is a port of a link on this node: where its packets are counted, and from where probes go
// to the other port.
type spot struct {
	probe.Pair
	device  string
	pod     string // the network namespace of the pod that has the device; "": the half has it
	unknown bool   // a pod has it, and it is not known which
}

// address is a MAC as a frame has it; all zero if it is none.
func address(mac chain.MAC) (a [6]byte) {
	copy(a[:], mac.HardwareAddr())
	return a
}

// spots are the ports of a half whose other end is known.
func (h *half) spots(want Half) []spot {
	if want.MTU < probe.MaxPayload {
		return nil
	}
	if !h.hub {
		return tunnelSpot(h, want, spot{Pair: probe.Pair{From: address(want.MAC), MTU: want.MTU}, device: Device})
	}
	var all []spot
	for _, p := range want.Ports {
		at := spot{Pair: probe.Pair{From: address(p.MAC), MTU: want.MTU}, device: PortDevice(p.End)}
		if i := p.Interface; i != nil {
			at.device, at.pod, at.unknown = i.Name, i.Netns, i.Netns == ""
		}
		if i := slices.IndexFunc(want.Ports, func(o Port) bool { return o.End != p.End }); i >= 0 {
			at.To, at.OneClock = address(want.Ports[i].MAC), true
			all = append(all, at)
			continue
		}
		all = append(all, tunnelSpot(h, want, at)...)
	}
	return all
}

// tunnelSpot is a spot whose other port is on another node; none if it is not known which.
func tunnelSpot(h *half, want Half, at spot) []spot {
	if h.vni == 0 || want.Peer == nil {
		return nil
	}
	at.To = address(want.Peer.MAC)
	return []spot{at}
}

// measure has the ports of a half measured.
func (s *server) measure(h *half, want Half) {
	spots := h.spots(want)
	s.probes.keep(want.Name, spots)
	for _, at := range spots {
		if at.unknown {
			continue // if it is measured, that goes on
		}
		if at.pod == "" {
			s.probes.measure(want.Name, at, h.at())
			continue
		}
		pod, err := s.podNetns(at.pod)
		if err != nil { // setPorts has said so
			continue
		}
		s.probes.measure(want.Name, at, host.OfFile(pod))
		_ = pod.Close()
	}
}
