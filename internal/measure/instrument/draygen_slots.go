// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drayage/dray/internal/result/record"
)

// slotBuffer is the memory of a port's ring: frames of 7,678 bytes for 30 ms.
const slotBuffer = "64M"

// slotted is a load in slots as a sender's.
func slotted(p Params) offer {
	return offer{frame: p.Slots.Frame(), perSec: float64(p.Slots.PacketRate()), poll: p.Poll, slots: p.Slots}
}

// checksum is the length of a frame's FCS.
func (o offer) checksum() int {
	if o.slots != nil && !o.slots.Ethernet() {
		return 0
	}
	return genFCS
}

// slotPorts are as genPorts. Programs make the messages themselves also at interfaces.
func slotPorts(from, to Endpoint, ethernet bool) (sink, source, target []string, err error) {
	if from.unprivileged() || to.unprivileged() {
		return nil, nil, nil, errors.New("draygen: messages in slots are no UDP: at an interface of another machine it may send UDP only")
	}
	if !ethernet && !(from.Native && to.Native) {
		return nil, nil, nil, errors.New("draygen: messages that are no frames need message buffers: write face: native at both ports of the link")
	}
	if sink, err = slotPort(to, dpdkWait(from, to)); err != nil {
		return nil, nil, nil, err
	}
	if source, err = slotPort(from, dpdkWait(from, to)); err != nil {
		return nil, nil, nil, err
	}
	if to.MAC != "" && ethernet {
		target = []string{"--to-mac", to.MAC}
	}
	return sink, source, target, nil
}

func slotPort(e Endpoint, wait time.Duration) ([]string, error) {
	if e.framed() {
		return genPort(e, wait)
	}
	return []string{"--port", "packet:" + e.Port, "--buffer", slotBuffer}, nil
}

// ports are the sink's and the sender's ports, and the sender's address options.
func (o offer) ports(from, to Endpoint) (sink, source, target []string, err error) {
	if o.slots != nil {
		return slotPorts(from, to, o.slots.Ethernet())
	}
	return genPorts(from, to, o.nextHop)
}

// slotOption describes a load in slots to either end; none otherwise.
func (o offer) slotOption() []string {
	if o.slots == nil {
		return nil
	}
	return []string{"--" + o.slots.Field(), o.slots.Option()}
}

// traffic is the sender's load. A sender in slots is busy if it may be, as an O-DU is.
func (o offer) traffic() []string {
	if o.slots == nil {
		return slices.Concat(o.around(), []string{"--size", o.size(), "--rate", o.rate, "--layer", "payload"}, o.marked())
	}
	options := o.slotOption()
	if o.poll && !o.busy {
		options = append(options, "--busy")
	}
	return options
}

// genWindow is a sink's report of the receive windows of a kind of messages.
type genWindow struct {
	Early        uint64        `json:"early"`
	OnTime       uint64        `json:"on_time"`
	Late         uint64        `json:"late"`
	SentLate     uint64        `json:"sent_late"`
	AfterOpening *genHistogram `json:"after_opening"`
}

// windows is the report in the record's terms; nil if the load has none.
func (r genResult) windows(o offer) (record.Windows, error) {
	if o.slots == nil {
		return nil, nil
	}
	if len(r.sink.Windows) == 0 {
		return nil, errors.New("the sink's output has no windows: rebuild draygen with `make build`")
	}
	out := record.Windows{}
	for kind, w := range r.sink.Windows {
		one, err := w.record(r.sink.Received)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		out[kind] = one
	}
	if n := out.Sum().Received(); n != r.sink.Received {
		return nil, fmt.Errorf("%d messages received, and %d judged by their windows", r.sink.Received, n)
	}
	return out, nil
}

func (w genWindow) record(most uint64) (record.Window, error) {
	h, err := w.AfterOpening.record("after_opening", most)
	if err == nil && uint64(h.Total()) != w.OnTime+w.Late {
		err = fmt.Errorf("%d messages on time or late, and %d times of them", w.OnTime+w.Late, h.Total())
	}
	return record.Window{Early: w.Early, OnTime: w.OnTime, Late: w.Late, SentLate: w.SentLate, AfterOpening: h}, err
}
