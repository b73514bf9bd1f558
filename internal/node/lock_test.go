// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// TestAWriterWaitsForReaders, and not for another writer, beyond its patience.
func TestAWriterWaitsForReaders(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "lock")
	testenv.Must(t, touch(path))
	reader, err := tryLock(path, shared)
	testenv.Must(t, err)
	defer reader.Close()
	got := make(chan error, 1)
	go func() {
		f, err := waitLock(ctx, path, exclusive, 0)
		if err == nil {
			err = f.Close()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("with a reader: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	testenv.Must(t, reader.Close())
	testenv.Must(t, <-got)
	writer, err := tryLock(path, exclusive)
	testenv.Must(t, err)
	defer writer.Close()
	if _, err := waitLock(ctx, path, exclusive, 0); !errors.Is(err, errBusy) {
		t.Errorf("with a writer: %v", err)
	}
}

// TestReadersDelayUp: `dray status` may look at a chain that is just being made.
func TestReadersDelayUp(t *testing.T) {
	n := newNode(t)
	c, p := pair(t)
	ctx, stop := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Add(1)
	go func() {
		defer reading.Done()
		for ctx.Err() == nil {
			_, _ = n.inspect(c.Name)
		}
	}()
	defer reading.Wait()
	defer stop()
	for range 50 {
		l, err := n.claim(ctx, "up", c, p)
		testenv.Must(t, err)
		testenv.Must(t, l.Remove(ctx))
	}
}
