// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// ReadYAML parses the only document of a file that should be of that kind. It does not
// expand nodes: an alias still points at its anchor. The kind "" is another format.
func ReadYAML(file string, data []byte, kind string) (*yaml.Node, *Error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		return nil, &Error{Pos: positionAt(file, data, invalidUTF8(data)),
			Text: "the file is not UTF-8 text", Fix: "save it as UTF-8"}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		empty := &Error{Pos: Position{File: file, Line: 1, Column: 1}, Text: "the file is empty"}
		if kind != "" {
			empty.Fix = fmt.Sprintf("begin it with %q and %q", "apiVersion: "+APIVersion, "kind: "+kind)
		}
		return nil, empty
	}
	if err != nil {
		return nil, syntaxError(file, data, err)
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
		return doc.Content[0], nil
	case err != nil:
		return nil, syntaxError(file, data, err)
	}
	return nil, &Error{Pos: Position{File: file, Line: second.Line, Column: second.Column},
		Text: `the file holds more than one YAML document`, Fix: `write one document per file, without a second "---"`}
}

// maxBisected limits the files, in bytes, for which bisection locates syntax errors,
// since it parses the file many times.
const maxBisected = 64 << 10

// syntaxError locates the YAML parser's failure. The parser names at most a line,
// sometimes a wrong one, so bisection finds the end of the shortest prefix that fails
// in the same way. In a large file the position is where the parser stopped reading,
// which is there or later.
func syntaxError(file string, data []byte, err error) *Error {
	problem := yamlProblem(err)
	var length int
	if len(data) <= maxBisected {
		length = sort.Search(len(data), func(n int) bool {
			return yamlProblem(parseAll(bytes.NewReader(data[:n]))) == problem
		})
	} else {
		r := &trickle{rest: data}
		_ = parseAll(r) // fails as before
		length = len(data) - len(r.rest)
	}
	at := max(length-1, 0)
	for at > 0 && !utf8.RuneStart(data[at]) {
		at--
	}
	return &Error{
		Pos:  positionAt(file, data, at),
		Text: "this is not valid YAML: " + problem,
		Fix:  syntaxFix(problem, data[at:]),
	}
}

// trickle reads byte by byte, so the parser never reads ahead.
type trickle struct{ rest []byte }

func (t *trickle) Read(p []byte) (int, error) {
	if len(t.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(1, len(p))], t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// parseAll returns the parser's first error in any document of r.
func parseAll(r io.Reader) error {
	dec := yaml.NewDecoder(r)
	for {
		var n yaml.Node
		if err := dec.Decode(&n); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

var yamlPrefix = regexp.MustCompile(`^yaml: (line \d+: )?`)

// yamlProblem is the parser's message without its line; "" for no error.
func yamlProblem(err error) string {
	if err == nil {
		return ""
	}
	return yamlPrefix.ReplaceAllString(err.Error(), "")
}

func syntaxFix(problem string, rest []byte) string {
	switch {
	case bytes.HasPrefix(rest, []byte("\t")):
		return "indent with spaces, not with a tab"
	case strings.HasPrefix(problem, "unknown anchor"):
		return "define the anchor with & before it is used, or quote a text that begins with *"
	case strings.Contains(problem, "cannot start any token"):
		return "put the text in quotes"
	case strings.Contains(problem, "mapping values are not allowed"):
		return `check the indentation, or quote a text that contains ": "`
	case strings.Contains(problem, "control characters"):
		return "remove the control character"
	case strings.Contains(problem, "unexpected end of stream"):
		return "close the quotes"
	}
	return "check the indentation, brackets and quotes here"
}

// invalidUTF8 is the offset of the first byte that is not UTF-8.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(data)
}

// positionAt converts an offset to a line and column. Like the YAML parser, it also
// breaks lines at CR, NEL, LS and PS.
func positionAt(file string, data []byte, offset int) Position {
	p := Position{File: file, Line: 1, Column: 1}
	for i := 0; i < offset; {
		r, size := utf8.DecodeRune(data[i:])
		i += size
		switch {
		case r == '\r' && i < len(data) && data[i] == '\n':
			// CR LF is one break, counted at the LF.
		case r == '\n', r == '\r', r == '\u0085', r == '\u2028', r == '\u2029':
			p.Line, p.Column = p.Line+1, 1
		default:
			p.Column++
		}
	}
	return p
}
