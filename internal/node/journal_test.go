// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
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
