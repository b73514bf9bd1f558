// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

func window(least, most time.Duration) chain.Window {
	return chain.Window{units.Duration(least * time.Microsecond), units.Duration(most * time.Microsecond)}
}

var slots = Params{Bitrate: 318_000_000, Duration: time.Second, Poll: true, Slots: &chain.Fronthaul{
	SCS: 30, PRB: 51, Layers: 1, VLAN: 1, T1aCP: window(285, 429), T1aUP: window(96, 196), T2aCP: window(285, 429), T2aUP: window(71, 428),
}}

var fapiSlots = Params{Slots: &chain.FAPI{SCS: 30, DLTTI: 2048, TXData: 115_000, Within: units.Duration(500 * time.Microsecond)}}

// TestFronthaulIsMeasured sends it over a veth pair, as frames of its own.
func TestFronthaulIsMeasured(t *testing.T) {
	generator(t)
	p := newPair(t)
	trial := runUntil(t, Draygen{record.QStream}, p, slots, func(trial record.Trial) bool {
		return trial.Windows["c_plane"].Received() > 0
	})
	if d := trial.Delivery; d.Sent == 0 || d.OfferedRate != 30_000 || d.OfferedBits != slots.Bitrate {
		t.Errorf("%+v", d)
	}
	if trial.Windows == nil {
		t.Fatal("no windows")
	}
	sum := trial.Windows.Sum()
	if sum.Received() != trial.Delivery.Received || trial.Windows["c_plane"].Received() == 0 {
		t.Errorf("%+v of %d messages", sum, trial.Delivery.Received)
	}
	client := trial.Instrument.Client
	if !slices.Contains(client, "--fronthaul") || !slices.Contains(client, "--busy") || slices.Contains(client, "--rate") || slices.Contains(client, "--to") {
		t.Errorf("sender: %q", client)
	}
}

func TestFronthaulNeedsFramesOfItsOwn(t *testing.T) {
	_, _, _, err := slotPorts(Endpoint{Far: &Far{}}, Endpoint{Native: true}, true)
	if err == nil || !strings.Contains(err.Error(), "UDP only") {
		t.Errorf("%v", err)
	}
}

func TestWindowsAreChecked(t *testing.T) {
	empty := func() *genHistogram { return &genHistogram{Counts: [][2]int64{}} }
	sink := func(spoil func(c, u *genWindow)) genResult {
		c, u := genWindow{Early: 1, SentLate: 2, AfterOpening: empty()}, genWindow{Early: 3, AfterOpening: empty()}
		spoil(&c, &u)
		return genResult{sink: genLine{Received: 6, Windows: map[string]genWindow{"c_plane": c, "u_plane": u}}}
	}
	o := slotted(slots)
	got, err := sink(func(c, u *genWindow) {}).windows(o)
	if err != nil || got["c_plane"].SentLate != 2 || got["u_plane"].Early != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	for want, spoil := range map[string]func(c, u *genWindow){
		"and 7 judged":              func(c, _ *genWindow) { c.Early++ },
		"and 0 times":               func(_, u *genWindow) { u.OnTime, u.Early = 1, 2 },
		"u_plane: no after_opening": func(_, u *genWindow) { u.AfterOpening = nil },
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

func TestFAPIMessagesAreNoFrames(t *testing.T) {
	a, b := Endpoint{Name: "a.p", Port: "/a/p", Native: true}, Endpoint{Name: "b.p", Port: "/b/p", Native: true, MAC: "02:00:00:00:00:01"}
	o := slotted(fapiSlots)
	s, err := genCommands([]string{"draygen"}, []string{"draygen"}, a, b, o, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{s.client, s.server} {
		at := slices.Index(command, "--fapi")
		if at < 0 || command[at+1] != "scs=30,dl-tti=2048,tx-data=115000,within=500" || slices.Contains(command, "--to-mac") || slices.Contains(command, "--catch-up") {
			t.Errorf("%q", command)
		}
	}
	d := genResult{}.delivery(record.QStream, o, Params{})
	if d.FrameBytes != 58_524 || d.DatagramBytes != 58_512 || d.OfferedRate != 4000 {
		t.Errorf("%+v", d)
	}
	if d := (genResult{}).delivery(record.QStream, slotted(slots), Params{}); d.FrameBytes != 1368+4 || d.DatagramBytes != 1368-42 {
		t.Errorf("%+v of a fronthaul", d)
	}
	if _, _, _, err := slotPorts(a, Endpoint{Name: "c.p"}, false); err == nil || !strings.Contains(err.Error(), "face: native") {
		t.Errorf("%v at an interface", err)
	}
}
