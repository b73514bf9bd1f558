// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"regexp"
	"strconv"

	"github.com/drayage/dray/internal/result/record"
)

// shaperRate finds the rate in a qdisc as read back: "tbf rate 10Mbit burst 4Kb" as tc
// prints it, or "rate 10Mbps" in the chain file's units.
var shaperRate = regexp.MustCompile(`\brate (\d+(?:\.\d+)?)([KkMGT]?)(?:bit|bps)\b`)

// shapedBelow reports whether the sender's port had a qdisc with a rate below bits per
// second: then the link holds such a sender back.
func shapedBelow(t record.Trial, bits float64) bool {
	m := shaperRate.FindStringSubmatch(t.Env.Qdiscs[t.From])
	if m == nil {
		return false
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return false
	}
	scale := map[string]float64{"": 1, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[m[2]]
	return v*scale < bits
}
