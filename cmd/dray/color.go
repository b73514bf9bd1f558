// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/drayage/dray/internal/spec/layout"
)

// When to colour verdicts and statuses: the values of --color.
const (
	colorAuto   = "auto" // on a terminal, unless NO_COLOR is set
	colorAlways = "always"
	colorNever  = "never"
)

// colorMode is the value of --color.
type colorMode string

func (m *colorMode) String() string { return string(*m) }
func (m *colorMode) Type() string   { return "when" }

func (m *colorMode) Set(s string) error {
	switch s {
	case colorAuto, colorAlways, colorNever:
		*m = colorMode(s)
		return nil
	}
	return fmt.Errorf("want auto, always or never")
}

// on reports whether output to w is coloured.
func (m colorMode) on(w io.Writer) bool {
	_, isTerminal := terminalWidth(w)
	plain := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	return m == colorAlways || m == colorAuto && isTerminal && !plain
}

const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	reset  = "\x1b[0m"
)

// colors are by verdict and status.
var colors = map[string]string{
	"met": green, "ok": green, "yes": green, "running": green, "up": green, "ready": green,
	"missed": red, "failed": red, "gone": red, "no": red, "infeasible": red, "not planned": red,
	"not measurable": yellow, "missing": yellow, "restarting": yellow, "waiting": yellow,
	"not run": yellow, "never run here": yellow,
}

// cell is the text between two gaps of a table.
var cell = regexp.MustCompile(`[^ \n]+( [^ \n]+)*`)

// paint colours each cell of a table that starts with a status. Text without tables
// has no cells: its words are a blank apart.
func paint(text string) string {
	return cell.ReplaceAllStringFunc(text, func(s string) string {
		word, _, _ := strings.Cut(s, ",")
		if color := colors[word]; color != "" {
			return color + word + reset + s[len(word):]
		}
		return s
	})
}

// printText prints tables, fitted and coloured on a terminal. In a pipe, a row is
// one line.
func (a *app) printText(write func(w io.Writer, width int) error) error {
	var b bytes.Buffer
	if err := write(&b, a.width()); err != nil {
		return err
	}
	text := layout.PlainLines(b.String())
	if a.color.on(a.out) {
		text = paint(text)
	}
	_, err := io.WriteString(a.out, text)
	return err
}
