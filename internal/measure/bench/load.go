// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math"
	"time"
)

// The packets that probe an idle link: this many a second, and at most this share
// of its capacity.
const (
	probeRate  = 1000
	probeShare = 0.01
)

// rateAt is the rate, packets/s, at which latency is measured under a share of a
// PDR in packets/s. 0 per cent is an idle link, which carries only the probes. It
// refuses a rate that sends nothing in a trial.
func rateAt(pdr float64, percent int, length time.Duration) (uint64, error) {
	rate := pdr * float64(percent) / 100
	if percent == 0 {
		rate = math.Min(probeRate, probeShare*pdr)
	}
	n := uint64(math.Round(rate))
	if float64(n)*length.Seconds() < 1 {
		return 0, fmt.Errorf("%d %% of a PDR of %.0f packets/s is less than one packet in a trial of %v; make the trials longer", percent, pdr, length)
	}
	return n, nil
}
