// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"unicode/utf8"

	"github.com/drayage/dray/internal/spec/layout"
)

// plainWriter passes on text that a function wrote, harmless on a terminal.
type plainWriter struct {
	to   io.Writer
	rest []byte // the beginning of a character, or of a line's end
}

// copier is what copies a function's output to w: unchanged, unless w is a terminal.
func copier(w io.Writer) io.Writer {
	if _, isTerminal := terminalWidth(w); isTerminal {
		return &plainWriter{to: w}
	}
	return w
}

func (p *plainWriter) Write(b []byte) (int, error) {
	text := append(p.rest, b...)
	end := len(text)
	for back := 1; back <= min(utf8.UTFMax, len(text)); back++ {
		if tail := text[len(text)-back:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) || tail[0] == '\r' {
				end -= back
			}
			break
		}
	}
	p.rest = bytes.Clone(text[end:])
	_, err := io.WriteString(p.to, layout.PlainLines(string(text[:end])))
	return len(b), err
}
