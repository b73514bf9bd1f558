// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"bytes"
	"io"
	"os"
	"strings"
)

// lastWords is how many log lines at the end an error quotes.
const lastWords = 5

// LastWords is the end of the process's log, to add to an error.
func (p Process) LastWords() string {
	text, err := os.ReadFile(p.Log())
	if text = bytes.TrimSpace(text); err != nil || len(text) == 0 {
		return ""
	}
	lines := strings.Split(string(text), "\n")
	return "; its log ends: " + strings.Join(lines[max(0, len(lines)-lastWords):], " | ")
}

// Logged reports whether the process's log has the text after an offset.
func (p Process) Logged(offset int64, text string) bool {
	f, err := os.Open(p.Log())
	if err != nil {
		return false
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return false
	}
	b, err := io.ReadAll(f)
	return err == nil && bytes.Contains(b, []byte(text))
}

// LogSize is the current log length, in bytes.
func (p Process) LogSize() int64 {
	info, err := os.Stat(p.Log())
	if err != nil {
		return 0
	}
	return info.Size()
}
