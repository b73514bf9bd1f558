// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/test/testenv"
)

func TestJournalReadsBackWhatWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), fileJournal)
	j, err := createJournal(path, owner{Process: host.ProcessID{PID: 7, Start: 9, Boot: "b"}, Command: "up"})
	if err != nil {
		t.Fatal(err)
	}
	first := host.DirResource("/run/x")
	second := host.NamespaceResource("/run/y")
	if err := j.Append(first); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(second); err != nil {
		t.Fatal(err)
	}
	before, err := readJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	if before.Committed {
		t.Error("committed before commit was written")
	}
	if err := j.commit(); err != nil {
		t.Fatal(err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	after, err := readJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	if !after.Committed || after.Owner == nil || after.Owner.Process.PID != 7 {
		t.Errorf("read back %+v", after)
	}
	if diff := cmp.Diff([]step.Resource{first, second}, after.Resources); diff != "" {
		t.Error(diff)
	}
}

func TestJournalIsNotTakenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), fileJournal)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := createJournal(path, owner{}); err == nil {
		t.Error("an existing journal was written to")
	}
}

func TestJournalLeavesOutATornLastLine(t *testing.T) {
	got := parseJournal([]byte(`{"make":[{"kind":"dir","path":"/a"}]}` + "\n" + `{"make":[{"kind":"dir","pa`))
	if got.Damage != nil || len(got.Resources) != 1 {
		t.Errorf("read %d resources, want the one that was written whole; %v", len(got.Resources), got.Damage)
	}
}

// TestJournalReadsBesideAMalformedLine: the error names it, and the other lines count.
func TestJournalReadsBesideAMalformedLine(t *testing.T) {
	const good = `{"make":[{"kind":"dir","path":"/a"}]}` + "\n"
	for text, resources := range map[string]int{
		"nonsense\n": 1, `{"mkae":[]}` + "\n": 1, `{"make":{}}` + "\n": 1, "\x00\x00\n": 1,
		`{"make":[{"kind":"dir","path":"/b"}],"newer":true}` + "\n": 2,
	} {
		if got := parseJournal([]byte(text + good)); got.Damage == nil || !strings.Contains(got.Damage.Error(), "line 1") || len(got.Resources) != resources {
			t.Errorf("%q: %d resources, %v", text, len(got.Resources), got.Damage)
		}
	}
}

// TestGarbageInAJournal: however much there is, the error is short, and soon known.
func TestGarbageInAJournal(t *testing.T) {
	for _, line := range []string{"\n", "{}\n", "x\n", `{"make":[]}` + "\n"} {
		for _, lines := range []int{10_000, 4 << 20} {
			got := parseJournal([]byte(strings.Repeat(line, lines)))
			if text := fmt.Sprint(got.Damage); len(text) > 200 || !strings.Contains(text, "line 1 is malformed") || !strings.Contains(text, "the first of 1000") {
				t.Errorf("%d times %q: an error of %d bytes, %.200s", lines, line, len(text), text)
			}
		}
	}
}

// TestATornWriteIsUndone, by the journal that writes it if it can, else by the next one that
// is opened.
func TestATornWriteIsUndone(t *testing.T) {
	dir := smallDisk(t, "size=8k")
	path := filepath.Join(dir, fileJournal)
	j, err := createJournal(path, owner{Process: host.ProcessID{PID: 7}, Command: "up"})
	testenv.Must(t, err)
	first := host.DirResource("/run/x")
	testenv.Must(t, j.Append(first))
	if err := j.Append(host.DirResource("/run/" + strings.Repeat("y", 16<<10))); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	testenv.Must(t, j.commit())
	testenv.Must(t, j.close())
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	testenv.Must(t, err)
	_, err = f.WriteString(`{"make":[{"kind":"dir","pa`)
	testenv.Must(t, errors.Join(err, f.Close()))
	j, err = openJournal(path)
	testenv.Must(t, err)
	testenv.Must(t, errors.Join(j.revoke(), j.close()))
	got, err := readJournal(path)
	if err != nil || got.Damage != nil || got.Committed || len(got.Resources) != 1 || got.Resources[0] != first {
		t.Errorf("read back %+v, %v", got, err)
	}
}

// smallDisk is a directory with a file system of its own; options bound it, as in mount(8).
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	testenv.Root(t)
	dir := t.TempDir()
	testenv.Must(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=711,"+options))
	t.Cleanup(func() { testenv.Must(t, unix.Unmount(dir, 0)) })
	return dir
}

func FuzzParseJournal(f *testing.F) {
	f.Add(`{"owner":{"process":{"pid":1,"start":2,"boot":"x"},"command":"up"}}` + "\n" + `{"commit":true}` + "\n")
	f.Add(`{"make":[{"kind":"link","name":"f1u","netns":"/run/x","mac":"02:00:00:00:00:01"}]}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		c := parseJournal([]byte(text))
		if c.Damage == nil && c.Committed && !strings.Contains(text, "commit") {
			t.Error("committed without an entry")
		}
	})
}
