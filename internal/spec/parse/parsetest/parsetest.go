// SPDX-License-Identifier: Apache-2.0

// Package parsetest checks a parser of YAML files and its JSON Schema with folders of
// files that each contain one fault.
package parsetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/drayage/dray/internal/spec/parse"
)

var update = flag.Bool("update", false, "write the errors that files in testdata/bad give into their comments")

// A bad file holds one fault. Comments at its end, which must move no line, state the
// expected result: a wantMark line for each error, without the file's name, and a
// schemaMark line for the JSON Schema.
const (
	wantMark   = "# want: "
	schemaMark = "# schema: "
)

// Kind is one kind of document.
type Kind struct {
	Name   string // value of the field "kind"
	Schema func() []byte
	Parse  func(file string, data []byte) error
}

// Verdict is "accepts", "rejects" or, for text that is not a single document of JSON's
// types, "cannot read".
func (k Kind) Verdict(t testing.TB, text []byte) string {
	t.Helper()
	_, root, fault := parse.Open("", text, k.Name)
	if fault != nil {
		return "cannot read"
	}
	var value any
	if err := root.Decode(&value); err != nil {
		return "cannot read"
	}
	asJSON, err := json.Marshal(value)
	if err != nil {
		return "cannot read"
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return "cannot read"
	}
	if k.compile(t).Validate(instance) != nil {
		return "rejects"
	}
	return "accepts"
}

// compiled caches each kind's schema; tests of one package run one at a time.
var compiled = map[string]*jsonschema.Schema{}

func (k Kind) compile(t testing.TB) *jsonschema.Schema {
	t.Helper()
	if s := compiled[k.Name]; s != nil {
		return s
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(k.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	compiled[k.Name] = s
	return s
}

// BadFiles checks every file of testdata/bad, at least n, against its comments. Each
// fault must have a position and a fix.
func (k Kind) BadFiles(t *testing.T, n int) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < n {
		t.Fatalf("%d bad files, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				text = k.updated(t, text)
				if err := os.WriteFile(file, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			k.check(t, text)
		})
	}
}

func (k Kind) check(t *testing.T, text []byte) {
	t.Helper()
	want := marked(text, wantMark)
	if want == "" {
		t.Fatal("the file states no expected result")
	}
	if got := strings.Join(k.faults(t, text), "\n"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got, want := k.Verdict(t, text), marked(text, schemaMark); got != want {
		t.Errorf("the schema %s it; want %q", got, want)
	}
}

// faults are a file's errors in the form of bad files.
func (k Kind) faults(t testing.TB, text []byte) []string {
	t.Helper()
	var faults parse.Errors
	if !errors.As(k.Parse("", text), &faults) {
		return nil
	}
	var lines []string
	for _, f := range faults {
		if f.Pos.Line == 0 || f.Pos.Column == 0 || f.Fix == "" || f.Text == "" {
			t.Errorf("incomplete fault: %v", f)
		}
		place := fmt.Sprintf("%d:%d: ", f.Pos.Line, f.Pos.Column)
		lines = append(lines, place+(&parse.Error{Text: f.Text, Fix: f.Fix}).Error())
	}
	return lines
}

// marked are the lines that begin with mark, without it.
func marked(text []byte, mark string) string {
	var found []string
	for _, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, mark); ok {
			found = append(found, rest)
		}
	}
	return strings.Join(found, "\n")
}

// updated replaces the comments at the end of text.
func (k Kind) updated(t testing.TB, text []byte) []byte {
	var out bytes.Buffer
	for _, line := range strings.SplitAfter(string(text), "\n") {
		if !strings.HasPrefix(line, wantMark) && !strings.HasPrefix(line, schemaMark) {
			out.WriteString(line)
		}
	}
	body := bytes.Clone(out.Bytes())
	for _, fault := range k.faults(t, body) {
		fmt.Fprintf(&out, "%s%s\n", wantMark, fault)
	}
	fmt.Fprintf(&out, "%s%s\n", schemaMark, k.Verdict(t, body))
	return out.Bytes()
}
