// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drayage/dray/internal/result/record"
)

// Fronthaul is a load in slots instead of a rate.
type Fronthaul struct {
	Option string // draygen's --fronthaul
	Rate   uint64 // frames per second
	Frame  int    // their mean length, in bytes without FCS
}

// fronthaulBuffer is the memory of a port's ring: frames of 7,678 bytes for 30 ms.
const fronthaulBuffer = "64M"

// offer is the fronthaul as a sender's load.
func (f *Fronthaul) offer(p Params) offer {
	return offer{frame: f.Frame, perSec: float64(f.Rate), poll: p.Poll, fronthaul: f.Option}
}

// slotPorts are as genPorts. Programs make the frames themselves also at interfaces.
func slotPorts(from, to Endpoint) (sink, source, target []string, err error) {
	if from.unprivileged() || to.unprivileged() {
		return nil, nil, nil, errors.New("draygen: a fronthaul's frames are eCPRI: at an interface of another machine it may send UDP only")
	}
	if sink, err = slotPort(to, dpdkWait(from, to)); err != nil {
		return nil, nil, nil, err
	}
	if source, err = slotPort(from, dpdkWait(from, to)); err != nil {
		return nil, nil, nil, err
	}
	if to.MAC != "" {
		target = []string{"--to-mac", to.MAC}
	}
	return sink, source, target, nil
}

func slotPort(e Endpoint, wait time.Duration) ([]string, error) {
	if e.framed() {
		return genPort(e, wait)
	}
	return []string{"--port", "packet:" + e.Port, "--buffer", fronthaulBuffer}, nil
}

// ports are the sink's and the sender's ports, and the sender's address options.
func (o offer) ports(from, to Endpoint) (sink, source, target []string, err error) {
	if o.fronthaul != "" {
		return slotPorts(from, to)
	}
	return genPorts(from, to, o.nextHop)
}

// traffic is the sender's load. A fronthaul's sender is busy if it may be, as an O-DU is.
func (o offer) traffic() []string {
	if o.fronthaul == "" {
		return slices.Concat(o.around(), []string{"--size", o.size(), "--rate", o.rate, "--layer", "payload"}, o.marked())
	}
	options := []string{"--fronthaul", o.fronthaul}
	if o.poll && !o.busy {
		options = append(options, "--busy")
	}
	return options
}

// genWindows is a sink's report of receive windows.
type genWindows struct {
	CPlane genWindow `json:"c_plane"`
	UPlane genWindow `json:"u_plane"`
}

type genWindow struct {
	Early        uint64        `json:"early"`
	OnTime       uint64        `json:"on_time"`
	Late         uint64        `json:"late"`
	SentLate     uint64        `json:"sent_late"`
	AfterOpening *genHistogram `json:"after_opening"`
}

// windows is the report in the record's terms; nil if the load has none.
func (r genResult) windows(o offer) (*record.Windows, error) {
	if o.fronthaul == "" {
		return nil, nil
	}
	w := r.sink.Windows
	if w == nil {
		return nil, errors.New("the sink's output has no windows: rebuild draygen with `make build`")
	}
	var out record.Windows
	var err error
	if out.CPlane, err = w.CPlane.record(r.sink.Received); err != nil {
		return nil, err
	}
	if out.UPlane, err = w.UPlane.record(r.sink.Received); err != nil {
		return nil, err
	}
	if n := out.Sum().Received(); n != r.sink.Received {
		return nil, fmt.Errorf("%d messages received, and %d judged by their windows", r.sink.Received, n)
	}
	return &out, nil
}

func (w genWindow) record(most uint64) (record.Window, error) {
	h, err := w.AfterOpening.record("after_opening", most)
	if err == nil && uint64(h.Total()) != w.OnTime+w.Late {
		err = fmt.Errorf("%d messages on time or late, and %d times of them", w.OnTime+w.Late, h.Total())
	}
	return record.Window{Early: w.Early, OnTime: w.OnTime, Late: w.Late, SentLate: w.SentLate, AfterOpening: h}, err
}
