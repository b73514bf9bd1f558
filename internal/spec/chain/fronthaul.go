// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"strings"
	"time"

	"github.com/drayage/dray/internal/spec/units"
)

// Fronthaul is the downlink of an O-RAN fronthaul as a link's load: C-plane and U-plane
// in slots, as O-RAN.WG4.CUS has them.
type Fronthaul struct {
	SCS    int `json:"scs"` // kHz
	PRB    int `json:"prb"`
	Layers int `json:"layers"`
	VLAN   int `json:"vlan"`
	// The windows of the C-plane and of the U-plane: how long before its symbol is on
	// air a message is sent, and arrives; at least and at most.
	T1aCP Window `json:"t1a_cp"`
	T1aUP Window `json:"t1a_up"`
	T2aCP Window `json:"t2a_cp"`
	T2aUP Window `json:"t2a_up"`
}

// Window is the shortest and the longest time before a symbol is on air.
type Window []units.Duration

func window(least, most time.Duration) Window {
	return Window{units.Duration(least * time.Microsecond), units.Duration(most * time.Microsecond)}
}

// usualWindows are those of the O-RAN software community's fronthaul library, by the
// subcarrier spacing (o-du/phy, "xRAN library design", tables 4 to 6).
var usualWindows = map[int]Fronthaul{
	15:  {T1aCP: window(560, 800), T1aUP: window(280, 400), T2aCP: window(400, 1120), T2aUP: window(200, 1120)},
	30:  {T1aCP: window(285, 429), T1aUP: window(96, 196), T2aCP: window(285, 429), T2aUP: window(71, 428)},
	120: {T1aCP: window(70, 100), T1aUP: window(35, 50), T2aCP: window(50, 140), T2aUP: window(25, 140)},
}

// complete fills in the usual windows for those that are not given.
func (f *Fronthaul) complete() {
	usual := usualWindows[f.SCS]
	for _, w := range []struct{ own, usual *Window }{{&f.T1aCP, &usual.T1aCP}, {&f.T1aUP, &usual.T1aUP}, {&f.T2aCP, &usual.T2aCP}, {&f.T2aUP, &usual.T2aUP}} {
		if *w.own == nil {
			*w.own = *w.usual
		}
	}
}

// Bytes of a frame: what is before the PRBs of a U-plane message, one PRB, and a C-plane
// message. The generator's payload begins after as many bytes as in a UDP frame over
// IPv4.
const (
	uPlaneHeaders, prbBytes, cPlaneFrame = 34, 28, 60
	fronthaulHeaders                     = 42
	symbols                              = 14
)

// MTU is the least MTU of a port that carries the longest frames, whose headers have a
// VLAN tag.
func (f *Fronthaul) MTU() int { return uPlaneHeaders + prbBytes*f.PRB - (frameExtra - 4) }

// The methods of SlotLoad.

func (f *Fronthaul) Field() string { return "fronthaul" }

// PacketRate counts a C-plane message in each slot and a U-plane message in each symbol,
// of each layer.
func (f *Fronthaul) PacketRate() units.PacketRate {
	return units.PacketRate((symbols + 1) * f.Layers * slotsPerSecond(f.SCS))
}

func (f *Fronthaul) Frame() int {
	return (symbols*(uPlaneHeaders+prbBytes*f.PRB) + cPlaneFrame) / (symbols + 1)
}

func (f *Fronthaul) Headers() int { return fronthaulHeaders }

func (f *Fronthaul) Ethernet() bool { return true }

func (f *Fronthaul) Bitrate() units.Bitrate { return payload(f) }

func (f *Fronthaul) Transit() units.Duration {
	return min(f.T1aCP[1]-f.T2aCP[0], f.T1aUP[1]-f.T2aUP[0])
}

func (f *Fronthaul) Option() string {
	var b strings.Builder
	fmt.Fprintf(&b, "scs=%d,prb=%d,layers=%d,vlan=%d", f.SCS, f.PRB, f.Layers, f.VLAN)
	for _, w := range []struct {
		name   string
		window Window
	}{{"t1a-cp", f.T1aCP}, {"t1a-up", f.T1aUP}, {"t2a-cp", f.T2aCP}, {"t2a-up", f.T2aUP}} {
		fmt.Fprintf(&b, ",%s=%d-%d", w.name, microseconds(w.window[0]), microseconds(w.window[1]))
	}
	return b.String()
}

func (f *Fronthaul) String() string {
	return fmt.Sprintf("eCPRI, %d PRB of %d kHz, %d per symbol", f.PRB, f.SCS, f.Layers)
}
