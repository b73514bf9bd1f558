// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/test/testenv"
)

// TestFAPIMessagesAreJudgedBySlots runs the example. How many messages are on time depends on
// what else the machine does: any verdict will do, but not a run without windows.
//
//	l2 ==== shm, messages of 115,000 bytes ==== l1
func TestFAPIMessagesAreJudgedBySlots(t *testing.T) {
	b := newBench(t)
	out := filepath.Join(t.TempDir(), "out")
	r := b.dray("run", example("fapi-slots.yaml"), "--rounds", "3", "--duration", "1s", "--out", out)
	if !slices.Contains([]int{0, missed, undecided}, r.Code) {
		t.Fatal(r)
	}
	for _, want := range []string{"≥ 99% within the receive windows", "DL_TTI.request", "TX_DATA.request"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("the report lacks %s: %s", want, r)
		}
	}
	trials, _, err := record.ReadFile(filepath.Join(out, "records.jsonl"))
	testenv.Must(t, err)
	judged := 0
	for _, trial := range trials {
		if trial.Quantity != record.QStream || trial.Error != "" {
			continue
		}
		judged++
		dl, tx := trial.Windows["dl_tti"], trial.Windows["tx_data"]
		if len(trial.Windows) != 2 || dl.Received() == 0 || tx.Received() == 0 || dl.Early+tx.Early > 0 || dl.Received()+tx.Received() != trial.Delivery.Received {
			t.Errorf("%s: %+v of %d messages", trial.ID, trial.Windows.Sum(), trial.Delivery.Received)
		}
	}
	if judged == 0 {
		t.Errorf("no trial sent messages: %s", r)
	}
}
