// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// measuringNode is a node in a state directory without chains.
func measuringNode(t *testing.T) *Node {
	t.Helper()
	return &Node{StateDir: filepath.Join(t.TempDir(), "state")}
}

func TestMeasureOneAtATime(t *testing.T) {
	ctx, n := context.Background(), measuringNode(t)
	refused := errors.New("refused")
	end, err := n.Measure(ctx, "run", func(m Measurer) error { t.Errorf("waits for %s", m); return refused })
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	_, err = n.Measure(ctx, "bench", func(m Measurer) error {
		seen = append(seen, m.String())
		return refused
	})
	if !errors.Is(err, refused) || len(seen) != 1 || !strings.Contains(seen[0], "dray run, process ") || !strings.Contains(seen[0], "since ") {
		t.Errorf("while another measures: %v, reported %q", err, seen)
	}
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := n.Measure(short, "bench", func(Measurer) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a waiter continues after its context: %v", err)
	}
	waiting, got := make(chan bool), make(chan error)
	go func() {
		end, err := n.Measure(ctx, "verify", func(Measurer) error { close(waiting); return nil })
		if err == nil {
			end()
		}
		got <- err
	}()
	<-waiting
	end()
	if err := <-got; err != nil {
		t.Errorf("the waiter got no turn: %v", err)
	}
}

// An ordinary user can neither hold the lock nor replace its file.
func TestMeasureIsForRootAlone(t *testing.T) {
	n := measuringNode(t)
	end, err := n.Measure(context.Background(), "run", nil)
	if err != nil {
		t.Fatal(err)
	}
	end()
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(n.StateDir, fileMeasuring), &st); err != nil || st.Mode&0o777 != 0o600 {
		t.Errorf("mode %o, %v", st.Mode, err)
	}
	if err := os.Chmod(n.StateDir, 0o777); err != nil {
		t.Fatal(err)
	}
	if end, err := n.Measure(context.Background(), "run", nil); err == nil {
		end()
		t.Error("it locks a file in a directory that anybody can write to")
	}
}
