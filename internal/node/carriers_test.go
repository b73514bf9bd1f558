// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/test/testenv"
)

// TestADeviceEndsWithItsLink: its command does not start before the link's process runs,
// and is stopped when that ends. Others run on.
func TestADeviceEndsWithItsLink(t *testing.T) {
	first, next := shell(t, "exec sleep 1000"), shell(t, "exec sleep 1000")
	l := &Live{dir: t.TempDir()}
	l.State.Reports = map[string]*transport.Report{"n3": {
		Vdevs:     []dpdk.Vdev{{Function: "a", Port: "p", EndsWithLink: true}, {Function: "b", Port: "q"}},
		Processes: []transport.Process{first},
	}}
	if got := l.carriers(chain.Function{Name: "b"}); got != nil {
		t.Errorf("a device that finds the next process waits for %v", got)
	}
	list := l.carriers(chain.Function{Name: "a"})
	running, err := l.awaitCarriers(context.Background(), list)
	if err != nil || len(running) != 1 || running[0].process.ID != first.ID {
		t.Fatalf("%v: %+v, %v", list, running, err)
	}

	ended := make(chan error, 1)
	go func() {
		_, why := watchAll(nil, time.Hour, running)(context.Background())
		ended <- why
	}()
	select {
	case why := <-ended:
		t.Fatalf("its switch runs, but: %v", why)
	case <-time.After(200 * time.Millisecond):
	}
	first.ID.Signal(syscall.SIGKILL)
	if why := <-ended; why == nil || !strings.Contains(why.Error(), "port p lost switch") {
		t.Errorf("its switch has ended, and the reason is %v", why)
	}

	short, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if again, err := l.awaitCarriers(short, list); err == nil {
		t.Errorf("it starts over a process that has ended: %+v", again)
	}
	testenv.Must(t, writeJSON(filepath.Join(l.dir, fileProcesses), map[string]Revival{"n3": {Processes: []transport.Process{next}}}))
	if again, err := l.awaitCarriers(context.Background(), list); err != nil || len(again) != 1 || again[0].process.ID != next.ID {
		t.Errorf("its switch runs again: %+v, %v", again, err)
	}
}
