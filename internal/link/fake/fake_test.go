// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/fake"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/spec/inventory"
)

// world runs a fake link's steps without touching the host.
type world struct {
	t *testing.T
	d *fake.Driver
}

// discard is a journal that drops its entries.
type discard struct{}

func (discard) Append(...step.Resource) error { return nil }

func (w world) Steps() []step.Step {
	w.t.Helper()
	b, err := w.d.Build(spec())
	if err != nil {
		w.t.Fatal(err)
	}
	return b.Steps
}

func (w world) Try(steps []step.Step, fault transporttest.Fault) error {
	runner := step.Runner{Journal: discard{}, Removers: fake.Removers(w.d), Fault: fault}
	return runner.Run(context.Background(), steps)
}

func (w world) Clean(when string) {
	w.t.Helper()
	if live := w.d.Live(); len(live) > 0 {
		w.t.Errorf("%s, %v is left", when, live)
	}
}

func spec() transport.Spec {
	end := func(i byte) transport.End {
		return transport.End{Netns: host.Netns{Path: "/" + string('a'+i)}, Name: "f1u", MAC: net.HardwareAddr{2, 0, 0, 0, 0, i}}
	}
	return transport.Spec{Chain: "c", Link: "f1u", Dir: "/nowhere", MTU: 1500, Ends: []transport.End{end(0), end(1)}}
}

func TestFaults(t *testing.T) {
	transporttest.RunFaults(t, func(t *testing.T) transporttest.World { return world{t, fake.New("fake")} })
}

func TestLiveAndFail(t *testing.T) {
	w := world{t, fake.New("fake")}
	if err := w.Try(w.Steps(), nil); err != nil {
		t.Fatal(err)
	}
	if live := w.d.Live(); len(live) != 3 {
		t.Errorf("resources of a link with two ends: %v", live)
	}
	if err := w.Try(w.Steps(), nil); err == nil {
		t.Error("the same link was created twice")
	}

	w = world{t, fake.New("fake")}
	broken := errors.New("broken")
	w.d.Fail = map[string]error{w.Steps()[1].Name: broken}
	if err := w.Try(w.Steps(), nil); !errors.Is(err, broken) {
		t.Errorf("error %v, want the one that was set", err)
	}
	w.Clean("after a failed step")
}

func TestProbe(t *testing.T) {
	d := fake.New("fake")
	if item := d.Probe(context.Background()); item.Status != inventory.OK || item.Name != "fake" {
		t.Errorf("probe: %+v", item)
	}
	d.Item = inventory.Item{Status: inventory.Missing, Reason: "told so"}
	if item := d.Probe(context.Background()); item.Status != inventory.Missing || item.Reason != "told so" {
		t.Errorf("probe: %+v", item)
	}
}
