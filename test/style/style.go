// SPDX-License-Identifier: Apache-2.0

// Package style checks the form of the source files of this repository.
package style

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
)

// Limits of size, in lines.
const (
	maxFile     = 600
	maxFunction = 80
	maxTest     = 120 // of a test function: a table of cases is data
)

// unlimited may be longer than maxFile: each is one thing that would be harder to read in two files.
var unlimited = map[string]bool{"dataplane/port/src/tx_lane.c": true}

// generated is in the first lines of a file that a program writes. It may be of any length.
var generated = "Gener" + "ated from "

// licence must be in the first lines of a source file. It is assembled here, like
// the words below, so that this file passes its own check.
var licence = "SPDX-License-" + "Identifier: Apache-2.0"

// forbidden words, and what is wrong with them.
var forbidden = map[string]string{
	"TO" + "DO":   "finish it, or write down in the documentation that it is not there",
	"FIX" + "ME":  "mend it",
	"/wo" + "rk/": "a path of one machine",
}

// Check returns one sentence for each rule that the file breaks.
func Check(name string, content []byte) []string {
	var broken []string
	lines := bytes.Count(content, []byte("\n"))
	if isSource(name, content) {
		head := content[:min(len(content), 300)]
		if !bytes.Contains(head, []byte(licence)) {
			broken = append(broken, name+": its first lines lack "+licence)
		}
		if lines > maxFile && !unlimited[name] && !bytes.Contains(head, []byte(generated)) {
			broken = append(broken, fmt.Sprintf("%s: %d lines; split it (limit %d)", name, lines, maxFile))
		}
	}
	if strings.HasSuffix(name, ".go") {
		broken = append(broken, longFunctions(name, content)...)
	}
	if isText(name, content) {
		broken = append(broken, words(name, content)...)
	}
	return broken
}

// isSource selects files that people write and that can carry a comment. Examples
// are excluded: what users copy from them is theirs.
func isSource(name string, content []byte) bool {
	if strings.Contains(name, "testdata/") || strings.HasPrefix(name, "examples/") {
		return false
	}
	switch path.Ext(name) {
	case ".go", ".sh", ".c", ".h", ".css", ".js", ".yaml", ".yml", ".mk":
		return true
	}
	return path.Base(name) == "Makefile" || bytes.HasPrefix(content, []byte("#!"))
}

func isText(name string, content []byte) bool {
	return path.Base(name) != "LICENSE" && !bytes.Contains(content, []byte{0})
}

func words(name string, content []byte) []string {
	var broken []string
	for i, line := range strings.Split(string(content), "\n") {
		for word, why := range forbidden {
			if strings.Contains(line, word) {
				broken = append(broken, fmt.Sprintf("%s:%d: %q: %s", name, i+1, word, why))
			}
		}
	}
	return broken
}

func longFunctions(name string, content []byte) []string {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, content, parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	limit := maxFunction
	if strings.HasSuffix(name, "_test.go") {
		limit = maxTest
	}
	var broken []string
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		start, end := fset.Position(f.Pos()), fset.Position(f.End())
		if n := end.Line - start.Line + 1; n > limit {
			broken = append(broken, fmt.Sprintf("%s: function %s has %d lines; split it (limit %d)",
				start, f.Name.Name, n, limit))
		}
	}
	return broken
}
