// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the errors that files in testdata/bad give into their comments")

// A file in testdata/bad holds one fault. Comments at its end, where they move
// no line, say what must come of it: a line of wantMark for each error, without
// the file's name, and one of schemaMark with what the JSON Schema makes of it.
const (
	wantMark   = "# want: "
	schemaMark = "# schema: "
)

func badFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d bad files, error %v", len(files), err)
	}
	return files
}

func TestBadFileErrors(t *testing.T) {
	for _, file := range badFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				text = updated(text)
				if err := os.WriteFile(file, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want := marked(text, wantMark)
			if len(want) == 0 {
				t.Fatal("the file does not say what it wants")
			}
			if got := faults(text); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func TestEveryFaultNamesPlaceAndFix(t *testing.T) {
	for _, file := range badFiles(t) {
		_, err := Load(file)
		var faults Errors
		if !errors.As(err, &faults) {
			t.Errorf("%s: error %v", file, err)
			continue
		}
		for _, f := range faults {
			if f.Pos.Line == 0 || f.Pos.Column == 0 || f.Fix == "" || f.Text == "" {
				t.Errorf("%s: incomplete fault: %v", file, f)
			}
		}
	}
}

// faults are the errors of a chain file as bad files list them.
func faults(text []byte) []string {
	_, err := Parse("", text)
	var faults Errors
	if !errors.As(err, &faults) {
		return nil
	}
	var lines []string
	for _, f := range faults {
		place := fmt.Sprintf("%d:%d: ", f.Pos.Line, f.Pos.Column)
		lines = append(lines, place+(&Error{Text: f.Text, Fix: f.Fix}).Error())
	}
	return lines
}

// marked are the lines of text that begin with mark, without it.
func marked(text []byte, mark string) []string {
	var found []string
	for _, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, mark); ok {
			found = append(found, rest)
		}
	}
	return found
}

// updated is text with new comments at its end.
func updated(text []byte) []byte {
	var out bytes.Buffer
	for _, line := range strings.SplitAfter(string(text), "\n") {
		if !strings.HasPrefix(line, wantMark) && !strings.HasPrefix(line, schemaMark) {
			out.WriteString(line)
		}
	}
	body := out.Bytes()
	for _, fault := range faults(body) {
		fmt.Fprintf(&out, "%s%s\n", wantMark, fault)
	}
	fmt.Fprintf(&out, "%s%s\n", schemaMark, schemaVerdict(body))
	return out.Bytes()
}
