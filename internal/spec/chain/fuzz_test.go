// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/test/testenv"
	"github.com/google/go-cmp/cmp"
)

// FuzzParse shows that the parser ends soon on any text. Its errors have positions in
// the file, in order, and a fix. The schema accepts what the parser accepts, which also
// survives JSON.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*/*.yaml", "../../../examples/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	for _, grow := range hostile {
		f.Add([]byte(grow(1 << 10)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		start := testenv.ProcessorTime(t)
		c, err := Parse("c.yaml", text)
		if took := testenv.ProcessorTime(t) - start; took > bound {
			t.Errorf("took %v", took)
		}
		if err != nil {
			checkFaults(t, text, err)
			return
		}
		if document.Verdict(t, text) == "rejects" {
			t.Error("the schema rejects what the parser accepts")
		}
		again := throughJSON(t, c)
		if diff := cmp.Diff(c, again, comparePrefixes, ignorePositions, ignoreHasLoad); diff != "" {
			t.Errorf("before (-) and after JSON (+) differ:\n%s", diff)
		}
	})
}

// checkFaults checks the properties of every error of Parse.
func checkFaults(t *testing.T, text []byte, err error) {
	t.Helper()
	var faults parse.Errors
	if !errors.As(err, &faults) || len(faults) == 0 {
		t.Fatalf("the error is %T", err)
	}
	if len(text) > parse.MaxSize {
		return // this error concerns the whole file
	}
	lines := splitLines(text)
	var last parse.Position
	for _, fault := range faults {
		p := fault.Pos
		if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > utf8.RuneCountInString(lines[p.Line-1])+1 {
			t.Errorf("outside of the file: %v", fault)
		}
		if p.Line < last.Line || p.Line == last.Line && p.Column < last.Column {
			t.Errorf("out of order: %v", fault)
		}
		if fault.Text == "" || fault.Fix == "" || strings.ContainsAny(fault.Error(), "\n\x00") {
			t.Errorf("incomplete or unprintable: %q", fault)
		}
		last = p
	}
}

// splitLines breaks text as YAML does.
func splitLines(text []byte) []string {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	s := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(string(text))
	return strings.Split(s, "\n")
}
