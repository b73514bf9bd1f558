// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
)

// carrierTimeout bounds the wait for the carrier of a port. The kernel takes
// microseconds, or up to a second after many other changes; this process may get no CPU for longer.
const carrierTimeout = 30 * time.Second

// NewBuild is a build with an empty report.
func NewBuild(steps ...step.Step) *Build {
	return &Build{Steps: steps, Report: &Report{Offloads: []OffloadChange{}, Qdiscs: []QdiscState{}}}
}

// StepName names a step of this link: "veth f1u: create pair".
func (s Spec) StepName(driver, what string) string { return driver + " " + s.Link + ": " + what }

// Iface is the interface of a port, as it should be created.
func (s Spec) Iface(e End) host.Iface {
	return host.Iface{Netns: e.Netns, Name: e.Name, MAC: e.MAC, MTU: s.MTU, Queues: e.Queues}
}

// PortResource is the interface of a port.
func PortResource(e End) step.Resource { return host.LinkResource(e.Netns, e.Name, e.MAC) }

// Finish appends the last steps of every driver with port interfaces:
// addresses, up, qdiscs, and reading all of it back.
func (b *Build) Finish(driver string, s Spec) {
	for i, e := range s.Ports() {
		name := func(what string) string { return s.StepName(driver, fmt.Sprintf("%s end %d %s", what, i+1, e.Name)) }
		if e.IP.IsValid() {
			b.add(name("address"), func(context.Context) error { return e.Netns.AddAddr(e.Name, e.IP) })
		}
		b.add(name("bring up"), func(context.Context) error { return e.Netns.SetUp(e.Name) })
		if q := s.ShapeOf(e); q != nil && !q.AtSwitch() {
			b.add(name("shape"), func(context.Context) error { return b.Shape(e.Netns, e.Name, e.Port(), *q) })
		}
	}
	b.add(s.StepName(driver, "read back"), func(ctx context.Context) error { return readBack(ctx, s) })
}

// add appends a step that creates only resources declared by earlier steps.
func (b *Build) add(name string, do func(context.Context) error) {
	b.Steps = append(b.Steps, step.Step{Name: name, Do: do})
}

// Shape attaches the qdisc to an interface, and reports the qdisc that the
// kernel set, for an end.
func (b *Build) Shape(ns host.Netns, name, end string, q chain.Qdisc) error {
	if err := ns.SetQdisc(name, HostQdisc(q)); err != nil {
		return err
	}
	return b.reportQdisc(ns, name, end)
}

// ShapedBySwitch checks that a switch has set the qdisc on its side of a port,
// and reports the qdisc that the kernel set.
func (b *Build) ShapedBySwitch(e End, side host.Iface, q chain.Qdisc) error {
	if err := side.Netns.CheckShaper(side.Name, HostQdisc(q)); err != nil {
		return err
	}
	return b.reportQdisc(side.Netns, side.Name, e.Port()+AtSwitch)
}

// AtSwitch follows a port's name in the report of a qdisc that the switch set.
const AtSwitch = " at the switch"

// reportQdisc reports an interface's qdisc as read from the kernel.
func (b *Build) reportQdisc(ns host.Netns, name, end string) error {
	state, err := ns.ReadQdisc(name)
	if err != nil {
		return err
	}
	b.Report.Qdiscs = append(b.Report.Qdiscs, QdiscState{End: end, Kind: state.Kind, Text: state.Text})
	return nil
}

// ShapeOf is the egress qdisc of a port; nil: none.
func (s Spec) ShapeOf(e End) *chain.Qdisc { return cmp.Or(e.Shape, s.Shape) }

// HostQdisc is a qdisc of a chain as the kernel gets it.
func HostQdisc(q chain.Qdisc) host.Qdisc {
	made := host.Qdisc{
		Kind: q.Kind, Rate: uint64(q.Rate), Ceil: uint64(q.Ceil), Burst: uint64(q.Burst),
		Latency: time.Duration(q.Latency), Limit: q.Limit,
		Target: time.Duration(q.Target), Interval: time.Duration(q.Interval), ECN: q.ECN,
	}
	if q.Child != nil {
		child := HostQdisc(*q.Child)
		made.Child = &child
	}
	return made
}

// SwitchOffload switches an offload of a port and reports it.
func (b *Build) SwitchOffload(e End, feature string, on bool, reason string) error {
	if err := e.Netns.SetOffload(e.Name, feature, on); err != nil {
		return err
	}
	b.Report.Offloads = append(b.Report.Offloads, OffloadChange{End: e.Name, Feature: feature, To: on, Reason: reason})
	return nil
}

// readBack compares each port with the spec: several requests create an
// interface, and a kernel may round or ignore one.
func readBack(ctx context.Context, s Spec) error {
	ctx, cancel := context.WithTimeout(ctx, carrierTimeout)
	defer cancel()
	var errs []error
	for _, e := range s.Ports() {
		if err := e.Netns.WaitCarrier(ctx, e.Name); err != nil {
			return err
		}
		got, err := e.Netns.ReadLink(e.Name)
		if err != nil {
			return err
		}
		errs = append(errs, compare(s, e, got))
	}
	return errors.Join(errs...)
}

func compare(s Spec, e End, got host.LinkState) error {
	switch {
	case !bytes.Equal(got.MAC, e.MAC):
		return fmt.Errorf("port %s has MAC %s, not %s", e.Name, got.MAC, e.MAC)
	case got.MTU != s.MTU:
		return fmt.Errorf("port %s has MTU %d, not %d", e.Name, got.MTU, s.MTU)
	case !got.Up:
		return fmt.Errorf("port %s is down", e.Name)
	case e.Queues > 0 && got.Queues != e.Queues:
		return fmt.Errorf("port %s has %d queues, not %d", e.Name, got.Queues, e.Queues)
	case e.IP.IsValid() && !slices.Contains(got.Addrs, e.IP):
		return fmt.Errorf("port %s has addresses %v, not %s", e.Name, got.Addrs, e.IP)
	}
	return nil
}
