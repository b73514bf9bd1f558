// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
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
	n := &Node{StateDir: t.TempDir()}
	l := &Live{Chain: &chain.Chain{Name: "c"}, dir: n.dir("c"), node: n}
	l.State.Plan = &plan.Plan{Links: []plan.Link{{Name: "plain"}, {Name: "switched"}, {Name: "native", Ends: native}}}
	l.State.Reports = map[string]*transport.Report{
		"switched": {Processes: []transport.Process{{Name: "database", ID: alive}, {Name: "switch", ID: dead}}},
	}
	stop := serveBroker(t, l.BrokerDir())
	// This broker was started by hand: the one that dray started has ended.
	if err := writeJSON(filepath.Join(l.dir, fileBroker), Broker{Process: dead, Since: time.Now()}); err != nil {
		t.Fatal(err)
	}
	wantFaults(t, l.LinkFaults(), map[string]string{"switched": "switch (process"})
	stop()
	wantFaults(t, l.LinkFaults(), map[string]string{"switched": "switch (process", "native": "its broker (process"})
}

// wantFaults compares faults with the expected texts.
func wantFaults(t *testing.T, got, want map[string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("faults %q", got)
	}
	for link, text := range want {
		if !strings.Contains(got[link], text) || strings.Contains(got[link], "database") {
			t.Errorf("link %s: %q, want %q", link, got[link], text)
		}
	}
}

// serveBroker is a broker in this process.
func serveBroker(t *testing.T, dir string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- broker.Serve(ctx, broker.Options{Dir: dir, Ready: func() { close(ready) }}) }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
