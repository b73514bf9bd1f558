// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
)

var slots = Params{Bitrate: 318_000_000, Duration: time.Second, Poll: true, Fronthaul: &Fronthaul{Option: "scs=30,prb=51,layers=1", Rate: 30_000, Frame: 1368}}

// TestFronthaulIsMeasured sends it over a veth pair, as frames of its own.
func TestFronthaulIsMeasured(t *testing.T) {
	generator(t)
	p := newPair(t)
	trial, err := Draygen{record.QStream}.Run(context.Background(), p.a, p.b, slots)
	if err != nil {
		t.Fatal(err)
	}
	if d := trial.Delivery; d.Sent == 0 || d.OfferedRate != 30_000 || d.OfferedBits != slots.Bitrate {
		t.Errorf("%+v", d)
	}
	if trial.Windows == nil {
		t.Fatal("no windows")
	}
	sum := trial.Windows.Sum()
	if sum.Received() != trial.Delivery.Received || trial.Windows.CPlane.Received() == 0 {
		t.Errorf("%+v of %d messages", sum, trial.Delivery.Received)
	}
	client := trial.Instrument.Client
	if !slices.Contains(client, "--fronthaul") || !slices.Contains(client, "--busy") || slices.Contains(client, "--rate") || slices.Contains(client, "--to") {
		t.Errorf("sender: %q", client)
	}
}

func TestFronthaulNeedsFramesOfItsOwn(t *testing.T) {
	_, _, _, err := slotPorts(Endpoint{Far: &Far{}}, Endpoint{Native: true})
	if err == nil || !strings.Contains(err.Error(), "UDP only") {
		t.Errorf("%v", err)
	}
}

func TestWindowsAreChecked(t *testing.T) {
	empty := func() *genHistogram { return &genHistogram{Counts: [][2]int64{}} }
	sink := func(spoil func(*genWindows)) genResult {
		w := &genWindows{genWindow{Early: 1, SentLate: 2, AfterOpening: empty()}, genWindow{Early: 3, AfterOpening: empty()}}
		spoil(w)
		return genResult{sink: genLine{Received: 6, Windows: w}}
	}
	o := offer{fronthaul: "scs=30"}
	got, err := sink(func(*genWindows) {}).windows(o)
	if err != nil || got.CPlane.SentLate != 2 || got.UPlane.Early != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	for want, spoil := range map[string]func(*genWindows){
		"and 7 judged":     func(w *genWindows) { w.CPlane.Early++ },
		"and 0 times":      func(w *genWindows) { w.UPlane.OnTime, w.UPlane.Early = 1, 2 },
		"no after_opening": func(w *genWindows) { w.UPlane.AfterOpening = nil },
	} {
		if _, err := sink(spoil).windows(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	if got, err := (genResult{}).windows(offer{}); got != nil || err != nil {
		t.Errorf("%+v, %v of a load at a rate", got, err)
	}
	if _, err := (genResult{}).windows(o); err == nil {
		t.Error("an old draygen is not noticed")
	}
}
