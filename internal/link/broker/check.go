// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/drayage/dray/internal/link/broker/wire"
)

const (
	nameMax = 160  // bounds a link's name, which is part of a file name
	nodeMax = 1023 // the largest number of a NUMA node in any kernel
)

// check returns the first error in a link's configuration.
func (l *Link) check() error {
	if l.Name == "" || len(l.Name) > nameMax {
		return fmt.Errorf("link %q: the name must have 1 to %d bytes", l.Name, nameMax)
	}
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("link %s: "+format, append([]any{l.Name}, args...)...)
	}
	switch {
	case l.Kind != KindShm && l.Kind != KindNetdev:
		return wrong("kind %q is neither %s nor %s", l.Kind, KindShm, KindNetdev)
	case len(l.Ends) != 2 && (l.Kind != KindNetdev || len(l.Ends) != 1):
		return wrong("%d ends: a link of kind shm has two, one of kind netdev one or two", len(l.Ends))
	case l.SampleShift > wire.SampleShiftMax && l.SampleShift != SampleEvery && l.SampleShift != SampleNone:
		return wrong("sample shift %d is over %d", l.SampleShift, wire.SampleShiftMax)
	case l.Pages != "" && l.Pages != PagesAuto && l.Pages != PagesHuge && l.Pages != PagesPlain:
		return wrong("pages %q: use one of %s, %s, %s", l.Pages, PagesAuto, PagesHuge, PagesPlain)
	case l.Machine && (l.Kind != KindShm || l.Pages == PagesHuge || l.Pages == PagesAuto):
		return wrong("kind %q with pages %q reaches no virtual machine: use kind %s with pages %s", l.Kind, l.Pages, KindShm, PagesPlain)
	case l.Node != nil && (*l.Node < 0 || *l.Node > nodeMax):
		return wrong("NUMA node %d is not within 0 to %d", *l.Node, nodeMax)
	case l.PacketBytes < 0 || l.PacketBytes > wire.PktStrideMax-headroom:
		return wrong("packets of %d bytes: the largest is %d", l.PacketBytes, wire.PktStrideMax-headroom)
	case l.MessageBytes < 0 || l.MessageBytes > 4<<20:
		return wrong("messages of %d bytes: the largest is 4 MiB", l.MessageBytes)
	case l.Slots < 0 || l.Slots > wire.RingMax || l.Messages < 0 || l.Messages > wire.MsgSlotsMax:
		return wrong("%d packet slots and %d message slots: at most %d and %d", l.Slots, l.Messages, wire.RingMax, wire.MsgSlotsMax)
	}
	here := 0
	for i := range l.Ends {
		if err := l.Ends[i].check(l.Kind); err != nil {
			return wrong("%w", err)
		}
		if l.Ends[i].here() {
			here++
		}
	}
	if here == 0 {
		return wrong("none of its ports has a socket")
	}
	if here == 2 && l.Ends[0].Socket == l.Ends[1].Socket {
		return wrong("both ends have the socket %s", l.Ends[0].Socket)
	}
	_, err := geometryOf(l, uint32(l.queues()), true)
	return err
}

func (e *End) check(kind string) error {
	switch {
	case !wire.NameValid(e.Port):
		return fmt.Errorf("port %q: a name has 1 to 15 of a-z A-Z 0-9 . _ - and does not begin with a dot", e.Port)
	case e.here() && (!filepath.IsAbs(e.Socket) || filepath.Clean(e.Socket) != e.Socket):
		return fmt.Errorf("port %s: socket %q is not an absolute, clean path", e.Port, e.Socket)
	case e.Owner < 0:
		return fmt.Errorf("port %s: owner %d is not a uid", e.Port, e.Owner)
	case len(e.MAC) != 6:
		return fmt.Errorf("port %s: MAC %q does not have 6 bytes", e.Port, e.MAC)
	case e.MTU < wire.MTUMin || e.MTU > wire.MTUMax:
		return fmt.Errorf("port %s: MTU %d is not within %d to %d", e.Port, e.MTU, wire.MTUMin, wire.MTUMax)
	case e.Queues < 0 || e.Queues > wire.MaxQueues:
		return fmt.Errorf("port %s: %d queues: at most %d", e.Port, e.Queues, wire.MaxQueues)
	case e.HoldPolicy != "" && e.HoldPolicy != HoldDrop && e.HoldPolicy != HoldCopy:
		return fmt.Errorf("port %s: hold policy %q is neither %s nor %s", e.Port, e.HoldPolicy, HoldDrop, HoldCopy)
	case kind == KindNetdev && e.here() && e.Interface == "":
		return fmt.Errorf("port %s: a link of kind netdev needs the interface", e.Port)
	}
	if err := e.Classes.check(e.Queues); err != nil {
		return fmt.Errorf("port %s: %w", e.Port, err)
	}
	return nil
}

// sampleShift is the shift as the protocol encodes it.
func (l *Link) sampleShift() uint32 {
	switch l.SampleShift {
	case SampleDefault:
		return 6
	case SampleEvery:
		return 0
	}
	return l.SampleShift // SampleNone is also the protocol's value
}

// queues is the number of queues that both ends have.
func (l *Link) queues() int {
	least := wire.MaxQueues
	for i := range l.Ends {
		least = min(least, l.Ends[i].queues())
	}
	return least
}

func (e *End) queues() int { return max(e.Queues, 1) }

// equal reports whether two links are the same in their JSON form.
func (l *Link) equal(other *Link) bool {
	a, errA := json.Marshal(l)
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// samePorts returns an error if a move would change the ports. A port may come
// to this host or leave it, and one with traffic classes may get others.
func (l *Link) samePorts(other *Link) error {
	if len(l.Ends) != len(other.Ends) {
		return fmt.Errorf("link %s: a move cannot change its %d ends", l.Name, len(l.Ends))
	}
	for i, e := range l.Ends {
		o := other.Ends[i]
		o.Netns, o.Interface = e.Netns, e.Interface
		if !e.here() || !o.here() {
			o.Socket, o.Owner = e.Socket, e.Owner
		}
		if (e.Classes == nil) != (o.Classes == nil) {
			return fmt.Errorf("link %s: port %s queues what it sends before the move or after it, and not both, which an open port cannot change: use `dray down` and `dray up`", l.Name, e.Port)
		}
		o.Classes = e.Classes
		if !(&Link{Ends: []End{e}}).equal(&Link{Ends: []End{o}}) {
			return fmt.Errorf("link %s: a move cannot change port %s: name, socket, owner, addresses, MTU, queues or quota", l.Name, e.Port)
		}
	}
	return nil
}
