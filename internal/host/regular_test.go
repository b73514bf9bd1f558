// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/test/testenv"
)

// TestWhatIsDamaged: only what a file holds, or what is in its place. A file that cannot be
// opened for now may be whole.
func TestWhatIsDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var v struct{ A int }
	for name, damage := range testenv.Damages(`{"a":"b"}`) {
		testenv.Must(t, ReplaceFile(path, []byte(`{"a":1}`), 0o600))
		damage(t, path)
		if err := ReadJSON(path, 1<<20, &v); !IsDamaged(err) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	testenv.Must(t, ReplaceFile(path, []byte(`{"a":1}`), 0o600))
	end := testenv.Unreadable(t, path)
	if err := ReadJSON(path, 1<<20, &v); !errors.Is(err, unix.EAGAIN) || IsDamaged(err) {
		t.Errorf("for now: %v", err)
	}
	end()
	if err := ReadJSON(path, 1<<20, &v); err != nil || v.A != 1 {
		t.Errorf("later: %+v, %v", v, err)
	}
	testenv.Must(t, os.Remove(path))
	if err := ReadJSON(path, 1<<20, &v); !errors.Is(err, fs.ErrNotExist) || IsDamaged(err) {
		t.Errorf("without a file: %v", err)
	}
}

// TestAFileThatIsTooLongIsNotRead: it takes no memory.
func TestAFileThatIsTooLongIsNotRead(t *testing.T) {
	const most = 64 << 20
	path := filepath.Join(t.TempDir(), "file")
	testenv.Must(t, os.WriteFile(path, nil, 0o600))
	testenv.Must(t, os.Truncate(path, most+1)) // a hole
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := ReadRegular(path, most)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; !IsDamaged(err) || took > most/2 {
		t.Errorf("%v, after %d bytes", err, took)
	}
	testenv.Must(t, os.Truncate(path, 1000))
	if b, err := ReadRegular(path, 1000); err != nil || len(b) != 1000 {
		t.Errorf("of the greatest length: %d bytes, %v", len(b), err)
	}
}

// TestAFileIsReplacedAtOnce: several writers leave one of their contents, and nothing else.
func TestAFileIsReplacedAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	var all sync.WaitGroup
	for _, letter := range "abcd" {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := range 50 {
				replace := ReplaceFile
				if n%2 == 0 {
					replace = ReplaceFileSynced
				}
				if err := replace(path, []byte(strings.Repeat(string(letter), 10000*(n%3+1))), 0o640); err != nil {
					t.Error(err)
				}
				if b, err := os.ReadFile(path); err != nil || len(b)%10000 != 0 || strings.Trim(string(b), string(b[:1])) != "" {
					t.Errorf("half of it: %d bytes, %v", len(b), err)
				}
			}
		}()
	}
	all.Wait()
	info, err := os.Stat(path)
	if files, _ := os.ReadDir(dir); err != nil || info.Mode() != 0o640 || len(files) != 1 {
		t.Errorf("%v, %v, %v", info, files, err)
	}
	if err := ReplaceFile(filepath.Join(dir, "no", "file"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a directory: %v", err)
	}
}
