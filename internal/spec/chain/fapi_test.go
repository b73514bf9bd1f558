// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/spec/units"
)

func fapiOf(t *testing.T, fields string) *FAPI {
	t.Helper()
	c, err := Parse("fapi", []byte(strings.Replace(fapiSlots, "{scs: 30}", fields, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return c.Links[0].FAPI
}

func TestFAPIFigures(t *testing.T) {
	f := fapiOf(t, "{scs: 30}")
	// The peak of a cell of 100 MHz with four layers, and its DL_TTI.request.
	if rate := f.Bitrate(); rate != 4000*8*(58_524-12) {
		t.Errorf("the payload is %v", rate)
	}
	if f.PacketRate() != 4000 || f.Frame() != (2048+115_000)/2 || f.Ethernet() || f.Largest() != 115_000 {
		t.Errorf("%v, mean message %d, the longer %v", f.PacketRate(), f.Frame(), f.Largest())
	}
	if f.Transit() != units.Duration(500*time.Microsecond) {
		t.Errorf("%v, not a slot", f.Transit())
	}
	if want := "scs=30,dl-tti=2048,tx-data=115000,within=500"; f.Option() != want {
		t.Errorf("draygen would get %s", f.Option())
	}
}

func TestFAPIOfAnotherCell(t *testing.T) {
	f := fapiOf(t, "{scs: 120, dl_tti: 1Ki, tx_data: 32Ki, within: 90us}")
	if want := "scs=120,dl-tti=1024,tx-data=32768,within=90"; f.Option() != want || f.PacketRate() != 16_000 || f.Transit() != units.Duration(90*time.Microsecond) {
		t.Errorf("draygen would get %s, %v", f.Option(), f.PacketRate())
	}
	if want := "FAPI, 1024 and 32768 bytes in each slot of 125us"; f.String() != want {
		t.Errorf("%q", f)
	}
	if f := fapiOf(t, "{scs: 15}"); f.Transit() != units.Duration(time.Millisecond) || f.PacketRate() != 2000 {
		t.Errorf("%v in slots of %v", f.PacketRate(), f.Transit())
	}
}

// A load in slots is one thing to all that measure and judge it.
func TestSlotLoad(t *testing.T) {
	for load, slotted := range map[string]Slotted{"fronthaul": {Fronthaul: &Fronthaul{}}, "fapi": {FAPI: &FAPI{}}} {
		if got := slotted.SlotLoad(); got == nil || got.Field() != load {
			t.Errorf("%v, not %s", got, load)
		}
	}
	if got := (Slotted{}).SlotLoad(); got != nil {
		t.Errorf("%v without a load", got)
	}
}
