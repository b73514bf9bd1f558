// SPDX-License-Identifier: Apache-2.0

package published

import (
	"testing"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
)

// Every cell of a fronthaul is a valid chain of two ends.
func TestFronthaulText(t *testing.T) {
	for _, c := range []experiment.Cell{
		{Tool: experiment.ToolFronthaul, Transport: "veth", Face: chain.FaceNetdev, Runtime: chain.RuntimeProcess},
		{Tool: experiment.ToolFronthaul, Transport: "veth", Face: chain.FaceNetdev, Runtime: chain.RuntimeProcess, Qdisc: "tbf", Rate: 50e6},
		{Tool: experiment.ToolFronthaul, Transport: "shm", Face: chain.FaceDPDK, Runtime: chain.RuntimeRunc, Event: experiment.EventKillDU},
		{Tool: experiment.ToolFronthaul, Transport: "memif", Face: chain.FaceDPDK, Runtime: chain.RuntimeRunc},
		{Tool: experiment.ToolFronthaul, Transport: "ovs-dpdk", Face: chain.FaceDPDK, Runtime: chain.RuntimeRunc},
	} {
		parsed, err := chain.Parse(c.String(), chainText(nil, c))
		if err != nil {
			t.Errorf("%v: %v", c, err)
			continue
		}
		for i, f := range parsed.Functions {
			if p := f.Ports[0]; f.Runtime != c.Runtime || p.Face != c.Face || string(p.MAC) != fronthaulAddress(i) || (p.QoS == nil) != (c.Qdisc == "") {
				t.Errorf("%v: %+v", c, f)
			}
		}
	}
}

// Lines as ru_emulator and gnb write them.
const (
	radioLine = "| 13:39:09 |  0  |    19158    |    14691    |     419     |    2249     |       195       |     1152      |      21       |      135      |       21        |" +
		"      415       |       10       |       66       |      2/1        |        4        |      0      |      0      |    6526     |"
	radioHead = "|   TIME   | ID  |  RX_TOTAL   | RX_ON_TIME  |  RX_EARLY   |   RX_LATE   |   RX_SEQ_ERR    | RX_ON_TIME_C  |  RX_EARLY_C   |   RX_LATE_C   |  RX_SEQ_ERR_C   |" +
		" RX_ON_TIME_C_U |  RX_EARLY_C_U  |  RX_LATE_C_U   | RX_SEQ_ERR_C_U  | RX_SEQ_ERR_PRACH | RX_CORRUPT  | RX_ERR_DROP |  TX_TOTAL   |"
	unitLine = "2026-11-26T13:39:11.682875 [METRICS ] OFH sector#0 metrics: pci=1 received messages stats: rx_total=6760 rx_early=6178 rx_on_time=380 rx_late=202 earliest_msg_us=-1249.99 " +
		"latest_msg_us=7749.94, nof_missed_uplink_symbols=133 tx_kpis: nof_late_dl_rgs=52 nof_late_ul_req=9 nof_late_cp_dl=11 nof_late_up_dl=83 nof_late_cp_ul=2"
)

func TestFronthaulCounters(t *testing.T) {
	got, ok := radioSecond(radioLine)
	if want := (fronthaulCounters{14691 + 1152 + 415, 419 + 21 + 10, 2249 + 135 + 66, 195 + 21 + 3 + 4, 1}); !ok || got != want {
		t.Errorf("%v, %+v, want %+v", ok, got, want)
	}
	for _, line := range []string{"", radioHead, radioLine[:len(radioLine)-20], unitLine} {
		if got, ok := radioSecond(line); ok {
			t.Errorf("%q: %+v", line, got)
		}
	}
	got, unsent, ok := unitSecond(unitLine)
	if want := (fronthaulCounters{380, 6178, 202, 0, 1}); !ok || got != want || unsent != 96 {
		t.Errorf("%v, %+v, %v, want %+v", ok, got, unsent, want)
	}
	if _, _, ok := unitSecond(radioLine); ok {
		t.Error("the radio unit's line was read as the distributed unit's")
	}
}

// Verdict and counters agree if both are good, or neither is. A good link cannot make its ends punctual.
func TestFronthaulAgreement(t *testing.T) {
	up := fronthaulCounters{onTime: 10, late: 10}
	for _, c := range []struct {
		ru     fronthaulCounters
		met    float64
		agrees float64
		known  bool
	}{
		{fronthaulCounters{onTime: 975, late: 25, seconds: 1}, 1, 1, true},
		{fronthaulCounters{onTime: 900, late: 100, seconds: 1}, 1, 0, false},
		{fronthaulCounters{onTime: 1000, gaps: 2, seconds: 1}, 1, 0, false},
		{fronthaulCounters{onTime: 500, late: 500, seconds: 1}, 0, 1, true},
		{fronthaulCounters{onTime: 1000, seconds: 1}, 0, 0, true},
	} {
		e := &record.Experiment{Values: map[string]float64{"link_met": c.met}, Why: map[string]string{}}
		err := fronthaulFigures(e, c.ru, up, 0)
		if agrees, known := e.Values["agrees"]; err != nil || agrees != c.agrees || known != c.known {
			t.Errorf("%+v: %v, %v", c, e, err)
		}
	}
	e := &record.Experiment{Values: map[string]float64{}, Why: map[string]string{"link_met": "too few samples"}}
	if err := fronthaulFigures(e, fronthaulCounters{onTime: 75, late: 25, seconds: 5}, up, 100); err != nil {
		t.Fatal(err)
	}
	if _, known := e.Values["agrees"]; known || e.Why["agrees"] == "" || e.Values["late"] != 25 || e.Values["late_at_du"] != 50 || e.Values["uplink_late"] != 50 {
		t.Errorf("%+v", e)
	}
	if fronthaulFigures(e, fronthaulCounters{}, up, 0) == nil {
		t.Error("the radio unit got nothing, and that was no error")
	}
}
