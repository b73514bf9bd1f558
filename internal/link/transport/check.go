// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Smallest MTUs: RFC 791 section 3.1 and RFC 8200 section 5.
const (
	minMTU4 = 68
	minMTU6 = 1280
)

// maxName is the longest interface name in bytes (IFNAMSIZ − 1).
const maxName = 15

// Ports are the ends that are ports.
func (s Spec) Ports() []End { return s.filter(false) }

// Uplinks are the ends that are host interfaces.
func (s Spec) Uplinks() []End { return s.filter(true) }

func (s Spec) filter(uplink bool) []End {
	var ends []End
	for _, e := range s.Ends {
		if e.Uplink == uplink {
			ends = append(ends, e)
		}
	}
	return ends
}

// Check reports every reason why a driver with those capabilities cannot build
// the spec, each with its fix.
func Check(driver string, caps inventory.Caps, s Spec) error {
	errs := checkEnds(caps, s)
	errs = append(errs, checkMTU(caps, s)...)
	errs = append(errs, checkHosts(caps, s), checkForwarding(caps, s))
	for _, e := range s.Ends {
		errs = append(errs, checkEnd(e))
	}
	errs = append(errs, checkShapes(caps, s)...)
	if m := s.Messages; m != nil && uint64(m.Size) > uint64(caps.MaxMessage) {
		errs = append(errs, fmt.Errorf("it carries no messages of %v; leave out messages, or lower their size to %d bytes", m.Size, caps.MaxMessage))
	}
	errs = append(errs, checkFaces(caps, s)...)
	if !filepath.IsAbs(s.Dir) {
		errs = append(errs, fmt.Errorf("directory %q is not absolute", s.Dir))
	}
	return s.Refuse(driver, errors.Join(errs...))
}

func checkForwarding(caps inventory.Caps, s Spec) error {
	switch {
	case s.Forwarding != "" && !caps.Forwards:
		return fmt.Errorf("it forwards in one way only, but the link sets forwarding %s; drop forwarding", s.Forwarding)
	case s.Forwarding == chain.ForwardingDirect && len(s.Ends) > 2:
		return fmt.Errorf("direct forwarding joins two ends, and it has %d; use forwarding: learning", len(s.Ends))
	}
	return nil
}

func checkShapes(caps inventory.Caps, s Spec) []error {
	var errs []error
	shapes := []*chain.Qdisc{s.Shape}
	for _, e := range s.Ends {
		shapes = append(shapes, e.Shape)
		if e.Shape != nil && caps.SameNetns {
			errs = append(errs, fmt.Errorf("port %s cannot have a qos of its own: all ports are one interface; give the link one", e.Name))
		}
	}
	for _, q := range shapes {
		switch {
		case q == nil:
		case q.AtSwitch() && caps.PortQueues && !caps.OwnShapes:
			errs = append(errs, errors.New("it has no switch; drop at: switch, or use transport ovs-dray"))
		case caps.PortQueues:
			errs = append(errs, checkQueues(*q, s))
		case q.UserOnly():
			errs = append(errs, fmt.Errorf("it has no queues such as %s with classes or slots; use transport shm or ovs-dray", q.Kind))
		case !caps.Shapes:
			return append(errs, errors.New("it cannot set qdiscs; drop qos and max_bitrate, or use transport veth"))
		case q.AtSwitch() && !caps.OwnShapes:
			return append(errs, errors.New("its switch sets no qdiscs, or it has none; drop at: switch, or use transport ovs"))
		default:
			errs = append(errs, HostQdisc(*q).Check(s.MTU))
		}
	}
	return errs
}

// checkQueues checks what ports that queue themselves have.
func checkQueues(q chain.Qdisc, s Spec) error {
	for _, e := range s.Ports() {
		if e.Queues > 1 {
			return fmt.Errorf("port %s: a port with a qdisc has one queue, not %d; give it one, or drop qos and max_bitrate", e.Name, e.Queues)
		}
	}
	_, err := q.InPort(s.MTU)
	return err
}

func checkEnds(caps inventory.Caps, s Spec) []error {
	var errs []error
	ports, uplinks := s.Ports(), s.Uplinks()
	if len(ports) < caps.MinEnds {
		errs = append(errs, fmt.Errorf("it has %d ports, but the transport needs at least %d; add an end", len(ports), caps.MinEnds))
	}
	if caps.MaxEnds > 0 && !caps.Tunnel && len(ports) > caps.MaxEnds {
		errs = append(errs, fmt.Errorf("it has %d ports, and the transport joins at most %d; use transport bridge", len(ports), caps.MaxEnds))
	}
	switch {
	case len(uplinks) > 0 && !caps.Uplink:
		errs = append(errs, errors.New("the transport takes no uplink; use macvlan or af-packet"))
	case len(uplinks) > 1:
		errs = append(errs, fmt.Errorf("it has %d uplinks; use one", len(uplinks)))
	case len(ports) == 1 && len(uplinks) == 0:
		errs = append(errs, errors.New("a link needs two ends; add a second port or an uplink"))
	}
	seen, macs := map[[2]string]bool{}, map[string]bool{}
	for _, p := range ports {
		if caps.SameNetns && p.Netns != ports[0].Netns {
			errs = append(errs, errors.New("the transport needs all ports on one function; use transport veth"))
		}
		key := [2]string{p.Netns.Path, p.Name}
		if seen[key] {
			errs = append(errs, fmt.Errorf("port %s appears twice; remove one", p.Name))
		}
		if macs[p.MAC.String()] {
			errs = append(errs, fmt.Errorf("MAC %s is on two ports; change one", p.MAC))
		}
		seen[key], macs[p.MAC.String()] = true, true
	}
	return errs
}

// maxNativeQueues is the most queues that libdray opens on a port.
const maxNativeQueues = 16

func checkFaces(caps inventory.Caps, s Spec) []error {
	var errs []error
	if need := caps.NeedsFace; need != "" && !slices.ContainsFunc(s.Ports(), func(e End) bool { return string(e.Face) == need || caps.Machines && e.Machine() }) {
		errs = append(errs, fmt.Errorf("none of its ports has face %s; give it to one, or use another transport", need))
	}
	libdray := slices.Contains(caps.Faces, string(chain.FaceNative))
	for _, e := range s.Ports() {
		face := e.Face
		if face == "" {
			face = chain.FaceNetdev
		}
		if !slices.Contains(caps.Faces, string(face)) && !(caps.Machines && e.Machine()) {
			errs = append(errs, fmt.Errorf("port %s has the face %s; use face: %s, or another transport", e.Name, face, caps.Faces[0]))
			continue
		}
		if e.NativeInMachine() && !caps.MachineMemory {
			errs = append(errs, fmt.Errorf("port %s is in a virtual machine, which the transport's native ports do not reach; use transport shm, or another runtime", e.Name))
		}
		if (e.Dpdk() || caps.Machines && e.Machine()) && !filepath.IsAbs(e.Dir) {
			errs = append(errs, fmt.Errorf("port %s: the path of its directory, %q, must be absolute", e.Name, e.Dir))
		}
		if e.Brokered() && libdray {
			errs = append(errs, checkBrokered(s, e))
		}
	}
	return errs
}

func checkBrokered(s Spec, e End) error {
	switch {
	case !filepath.IsAbs(e.Socket):
		return fmt.Errorf("port %s: the path of its socket, %q, must be absolute", e.Name, e.Socket)
	case !filepath.IsAbs(s.Broker):
		return fmt.Errorf("port %s: no broker serves native ports: its directory %q is not absolute", e.Name, s.Broker)
	case e.Queues > maxNativeQueues:
		return fmt.Errorf("port %s: %d queues are more than the %d that a native port can have", e.Name, e.Queues, maxNativeQueues)
	}
	return nil
}

func checkMTU(caps inventory.Caps, s Spec) []error {
	least := minMTU4
	for _, e := range s.Ends {
		if e.IP.Addr().Is6() {
			least = minMTU6
		}
	}
	if s.MTU < least || s.MTU > caps.MaxMTU {
		return []error{fmt.Errorf("mtu %d is not within %d–%d bytes; give an mtu in that range", s.MTU, least, caps.MaxMTU)}
	}
	return nil
}

func checkEnd(e End) error {
	if n := len(e.Name); n == 0 || n > maxName {
		return fmt.Errorf("interface name %q does not have 1–%d bytes; rename it", e.Name, maxName)
	}
	if e.Uplink {
		return nil
	}
	if len(e.MAC) != 6 || e.MAC[0]&1 != 0 {
		return fmt.Errorf("port %s: %q is not a unicast MAC address; give one such as 02:00:00:00:00:01", e.Name, e.MAC)
	}
	if e.Queues < 0 || e.Queues > maxQueues {
		return fmt.Errorf("port %s: %d queues are not within 1–%d", e.Name, e.Queues, maxQueues)
	}
	return nil
}

// maxQueues is the most queues that the kernel allows on a virtual interface.
const maxQueues = 4096
