// SPDX-License-Identifier: Apache-2.0

package record

import "testing"

func TestJitterNeedsOneClock(t *testing.T) {
	for name, c := range map[string]struct {
		t    Trial
		want bool
	}{
		"iperf":                {Trial{Quantity: QDelivery, Delivery: &Delivery{}}, true},
		"generator, one clock": {Trial{Quantity: QStream, Delivery: &Delivery{}, OneWay: &OneWay{}}, true},
		"generator, two":       {Trial{Quantity: QStream, Delivery: &Delivery{}}, false},
		"no delivery":          {Trial{Quantity: QDelivery}, false},
	} {
		if got := c.t.HasJitter(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
