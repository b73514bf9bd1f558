// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
)

// publishedN16 holds the 72 figures of N16's tables for FIFO, HFSC, HTB, SFQ, CoDel and
// FQ-CoDel, in Mb/s, ms and ms.
var publishedN16 = map[string]string{
	"throughput-c-bridge":  "93.46 93.41 93.4 93.33 93.63 93.71",
	"throughput-c-ovs":     "91.93 91.62 91.51 91.63 91.77 91.66",
	"throughput-vm-bridge": "87.38 87.28 87.66 82.28 86.67 86.68",
	"throughput-vm-ovs":    "90.82 90.81 91.14 90.78 90.46 90.91",
	"round-trip-c-bridge":  "0.286 0.288 0.284 0.285 0.284 0.283",
	"round-trip-c-ovs":     "0.287 0.29 0.289 0.289 0.288 0.288",
	"round-trip-vm-bridge": "0.509 0.513 0.518 0.515 0.54 0.514",
	"round-trip-vm-ovs":    "0.31 0.37 0.36 0.35 0.38 0.37",
	"jitter-c-bridge":      "0.0025 0.0045 0.0048 0.0038 0.0048 0.0039",
	"jitter-c-ovs":         "0.0083 0.0094 0.0096 0.0087 0.0042 0.0048",
	"jitter-vm-bridge":     "0.016 0.019 0.026 0.021 0.018 0.016",
	"jitter-vm-ovs":        "0.014 0.018 0.019 0.015 0.011 0.012",
}

func TestFiguresOfN16AreAsPublished(t *testing.T) {
	e, err := Find("n16")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]experiment.Row{}
	for _, r := range e.Rows {
		rows[r.Name] = r
	}
	for row, figures := range publishedN16 {
		for i, want := range strings.Fields(figures) {
			name := row + "-" + []string{"fifo", "hfsc", "htb", "sfq", "codel", "fq-codel"}[i]
			if r := rows[name]; fmt.Sprint(r.Value) != want || r.Published != want+" "+r.Figure.Unit() {
				t.Errorf("%s: %v (%q), want the published %s", name, r.Value, r.Published, want)
			}
			delete(rows, name)
		}
	}
	for name, r := range rows {
		if r.Value != 0 {
			t.Errorf("%s: %v is not among the published figures", name, r.Value)
		}
	}
}

// TestContainersOfN16HaveOneDatapath: the containers over Open vSwitch are compared
// with each other, so all must use the kernel datapath.
func TestContainersOfN16HaveOneDatapath(t *testing.T) {
	e, err := Find("n16")
	if err != nil {
		t.Fatal(err)
	}
	atSwitch := 0
	for _, r := range e.Rows {
		if r.Cell.Transport == "ovs" && r.Cell.Runtime == chain.RuntimeRunc && r.Cell.Datapath != experiment.DatapathKernel {
			t.Errorf("%s: the datapath is %q", r.Name, r.Cell.Datapath)
		}
		if r.Cell.At == chain.AtSwitch {
			atSwitch++
		}
	}
	if atSwitch != 2*3*5+5 { // containers and VMs, figures, disciplines that the table offers; and the long trials
		t.Errorf("%d rows have the discipline at the switch", atSwitch)
	}
}
