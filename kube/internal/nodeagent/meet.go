// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	cdi "tags.cncf.io/container-device-interface/specs-go"

	"github.com/drayage/dray/internal/link/memif"
	"github.com/drayage/dray/internal/link/native"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/kube/internal/claims"
	"github.com/drayage/dray/kube/internal/eal"
	"github.com/drayage/dray/kube/internal/meet"
)

// The ends of a memif link are devices of net_memif, which share memory without a broker's help.
// One end listens at a socket. No directory is in both pods: the listening end's is in a file
// system of its container, and dray-eal shows the socket to the other pod.

// meets reports whether the pods of a link share memory by a socket of one of them.
func meets(l *plan.Link) bool { return l.Transport == memif.Name }

// checkMeeting refuses a link whose ends cannot meet.
func checkMeeting(l *plan.Link) error {
	for _, e := range l.Ends {
		if e.Face != chain.FaceDPDK {
			return fmt.Errorf("link %s: port %s is no device of DPDK, and %s joins no others", l.Name, e, l.Transport)
		}
	}
	if l.Ends[0].Function == l.Ends[1].Function {
		return fmt.Errorf("link %s: both its ports belong to function %s, which would wait for itself to listen; use transport: shm", l.Name, l.Ends[0].Function)
	}
	return nil
}

// deviceOf is the device of a dpdk port.
func deviceOf(p *claims.Port) dpdk.Vdev {
	switch {
	case switched(&p.Link):
		return vhostDevice(p)
	case !meets(&p.Link):
		return native.Device(p.Function, p.Port)
	}
	v := memif.Device(p.Function, p.Port, p.Link.Ends[p.End()].MAC.HardwareAddr(), p.Link.MTU, p.End() == fleet.Listener(&p.Link))
	v.Dir = v.Inside()
	return v
}

// scratch is a file system of a container for the sockets of its devices: small, and of its own.
func scratch(s *eal.Setting) []*cdi.Mount {
	if !s.Attended() {
		return nil
	}
	return []*cdi.Mount{{
		HostPath: "tmpfs", Type: "tmpfs", ContainerPath: dpdk.LinksInside,
		Options: []string{"nosuid", "nodev", "noexec", "size=64k", "nr_inodes=64", "mode=1777"},
	}}
}

// meeting is one of a link: of both its ends, or of one end with the switch.
type meeting struct {
	meet.Meeting
	link string
	end  int // bothEnds, or the one
}

// meetings are those of the links that are wished for.
func meetings(wishes map[string]*wish) (all []meeting) {
	for _, name := range slices.Sorted(maps.Keys(wishes)) {
		switch w := wishes[name]; {
		case w.switched != nil:
			all = append(all, w.introductions()...)
		case w.meets:
			end := func(i int) meet.End { return meet.End{Socket: w.spec.Ends[i].Socket, User: w.spec.Ends[i].User} }
			both := meet.Meeting{Name: name, Ends: [2]meet.End{end(w.listener), end(1 - w.listener)}}
			all = append(all, meeting{both, name, bothEnds})
		}
	}
	return all
}

// arrange has the broker arrange the meetings. A broker that is too old for them matters only if
// there are some.
func (l *links) arrange(ctx context.Context, all []claims.Claim, wishes map[string]*wish, found faults) {
	wanted := meetings(wishes)
	var asked []meet.Meeting
	for _, m := range wanted {
		asked = append(asked, m.Meeting)
	}
	wrong, err := meet.Apply(ctx, l.meet, asked)
	if err != nil && (len(wanted) > 0 || !errors.Is(err, meet.ErrAbsent)) {
		l.log.Error("meetings", "error", err)
	}
	for _, m := range wanted {
		switch {
		case err != nil:
			found.blame(all, m.link, m.end, fmt.Errorf("link %s: %w", m.link, err))
		case wrong[m.Name] != "":
			found.blame(all, m.link, m.end, fmt.Errorf("link %s: %s", m.link, wrong[m.Name]))
		}
	}
}

// notCounted is why there is no verdict from the packets of a link; "" if there can be one.
func notCounted(l *plan.Link) string {
	switch {
	case meets(l):
		return "memif counts no packets, and no program but the two applications sees them"
	case switched(l):
		return "packets of " + l.Transport + " carry no stamps, and nodes do not read the counters of its switch"
	}
	return ""
}
