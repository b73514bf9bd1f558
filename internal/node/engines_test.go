// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/transport"
)

// identify is this process, and one that has ended.
func identify(t *testing.T) (alive, dead host.ProcessID) {
	t.Helper()
	alive, err := host.Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	sleeper := exec.Command("sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	dead, err = host.Identify(sleeper.Process.Pid)
	if killErr := sleeper.Process.Kill(); err != nil || killErr != nil {
		t.Fatal(err, killErr)
	}
	_ = sleeper.Wait() // it was killed
	return alive, dead
}

func TestFaultsOfLinksNameWhatHasEnded(t *testing.T) {
	alive, dead := identify(t)
	native := []plan.End{{Function: "a", Port: "p", Face: chain.FaceNative}, {Function: "b", Port: "p", Face: chain.FaceNative}}
	l := &Live{Chain: &chain.Chain{Name: "c"}, dir: t.TempDir(), node: &Node{}}
	l.State.Plan = &plan.Plan{Links: []plan.Link{{Name: "plain"}, {Name: "switched"}, {Name: "native", Ends: native}}}
	l.State.Reports = map[string]*transport.Report{
		"switched": {Processes: []transport.Process{{Name: "database", ID: alive}, {Name: "switch", ID: dead}}},
	}
	note := func(id host.ProcessID) {
		if err := writeJSON(filepath.Join(l.dir, fileBroker), Broker{Process: id, Since: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		broker host.ProcessID
		faults map[string]string // what each must say
	}{
		{alive, map[string]string{"switched": "switch (process"}},
		{dead, map[string]string{"switched": "switch (process", "native": "its broker (process"}},
	} {
		note(test.broker)
		got := l.LinkFaults()
		if len(got) != len(test.faults) {
			t.Errorf("faults %q", got)
		}
		for link, want := range test.faults {
			if !strings.Contains(got[link], want) || strings.Contains(got[link], "database") {
				t.Errorf("link %s: %q, want %q", link, got[link], want)
			}
		}
	}
}
