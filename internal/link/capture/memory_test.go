// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/test/testenv"
)

// memoryFile is a file of the size of a capture memory.
func memoryFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	if err == nil {
		err = f.Truncate(int64(start(1).Size))
	}
	testenv.Must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func TestOpenMemory(t *testing.T) {
	f := memoryFile(t)
	m, err := OpenMemory(f, start(1), nil)
	testenv.Must(t, err)
	put(m.rings[1], 5, 3, []byte("abc"))
	if got := drain(t, m); len(got) != 1 || got[0] != `5 3/3 "abc" false 0` {
		t.Errorf("got %q", got)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	short, wrong := start(2), start(1)
	wrong.Size++
	if _, err := OpenMemory(f, short, nil); err == nil {
		t.Error("accepted a file that is too short")
	}
	if _, err := OpenMemory(f, wrong, nil); err == nil {
		t.Error("accepted a size that does not match the layout")
	}
}

// TestMemoryGoes: memory that disappears is an error, not a crash.
func TestMemoryGoes(t *testing.T) {
	f := memoryFile(t)
	m, err := OpenMemory(f, start(1), nil)
	testenv.Must(t, err)
	t.Cleanup(func() { m.Close() })
	testenv.Must(t, f.Truncate(0))
	err = m.Read(func(Packet) error { return errors.New("a packet") })
	if err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("error %v", err)
	}
	if c := m.Counts(); c != (Counts{}) { // Run calls it at the end of the file
		t.Errorf("counts %+v without any packet", c)
	}
}
