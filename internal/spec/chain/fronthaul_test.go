// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/spec/units"
)

func TestFronthaulFigures(t *testing.T) {
	c, err := Parse("slots", []byte(slots))
	if err != nil {
		t.Fatal(err)
	}
	f := c.Links[0].Fronthaul
	// Four frames of 7,682 bytes with FCS in each of 14 symbols, and four of 64 bytes.
	if f.MTU() != 7664 || f.PacketRate() != 120_000 || f.Frame() != (14*7678+60)/15 {
		t.Errorf("mtu %d, %v, mean frame %d", f.MTU(), f.PacketRate(), f.Frame())
	}
	if rate := f.Bitrate(); rate < 6_800_000_000 || rate > 6_900_000_000 {
		t.Errorf("the payload is %v", rate)
	}
	if f.Transit() != units.Duration(125*time.Microsecond) {
		t.Errorf("%v from the first moment to send to the last to arrive, not 125us", f.Transit())
	}
	if want := "scs=30,prb=273,layers=4,vlan=1,t1a-cp=285-429,t1a-up=96-196,t2a-cp=285-429,t2a-up=71-428"; f.Option() != want {
		t.Errorf("draygen would get %s", f.Option())
	}
}

func TestFronthaulWindowsOfARadioUnit(t *testing.T) {
	text := strings.Replace(slots, "{scs: 30}", "{scs: 120, prb: 66, layers: 1, vlan: 7, t2a_up: [30us, 90us]}\n    requires: {on_time: 99.999%}", 1)
	c, err := Parse("slots", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	l := c.Links[0]
	if want := "scs=120,prb=66,layers=1,vlan=7,t1a-cp=70-100,t1a-up=35-50,t2a-cp=50-140,t2a-up=30-90"; l.Fronthaul.Option() != want {
		t.Errorf("draygen would get %s", l.Fronthaul.Option())
	}
	if l.Requires.OnTime != 0.99999 {
		t.Errorf("on time: %v", l.Requires.OnTime)
	}
}
