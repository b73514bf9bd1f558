// SPDX-License-Identifier: Apache-2.0

package style

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMutationsApply finds the text that each mutation of libdray replaces. The run of
// all mutations takes too long to notice a stale one soon.
func TestMutationsApply(t *testing.T) {
	port := filepath.Join(root, "dataplane/port")
	list, err := os.ReadFile(filepath.Join(port, "tests/mutations/list.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var name, source string
	checked := 0
	for _, line := range strings.Split(string(list), "\n") {
		if rest, ok := strings.CutPrefix(line, "mutation "); ok {
			fields := strings.Split(rest, "|")
			if len(fields) != 3 {
				t.Fatalf("not NAME | TEST | FILE: %s", line)
			}
			name = strings.TrimSpace(fields[0])
			text, err := os.ReadFile(filepath.Join(port, strings.TrimSpace(fields[2])))
			if err != nil {
				t.Fatal(err)
			}
			source = unspaced(string(text))
		}
		if old, ok := strings.CutPrefix(line, "- "); ok {
			checked++
			if !strings.Contains(source, unspaced(old)) {
				t.Errorf("mutation %q: its file no longer has: %s", name, old)
			}
		}
	}
	if checked == 0 {
		t.Error("no mutation was found")
	}
}

// unspaced removes white space, since the formatter breaks lines anywhere.
func unspaced(text string) string { return strings.Join(strings.Fields(text), "") }
