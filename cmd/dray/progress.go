// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/drayage/dray/internal/spec/layout"
)

// silence is the time since a line of progress was last written to a file or pipe.
type silence struct {
	mu    sync.Mutex
	since time.Time
}

// silenceAtMost is how long no line is written there while there are lines that a terminal would replace.
const silenceAtMost = time.Minute

func (s *silence) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = now
}

// over reports whether it has lasted long enough. It begins with the first call, if not before.
func (s *silence) over(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		s.since = now
	}
	return now.Sub(s.since) >= silenceAtMost
}

// progress reports the current action on standard error. On a terminal, a line that
// begins with a space replaces the last one, if that did too. Elsewhere, one appears each minute.
func (a *app) progress(format string, args ...any) {
	if a.quiet {
		return
	}
	line := layout.PlainLines(fmt.Sprintf(format, args...))
	width, isTerminal := terminalWidth(a.err)
	transient := strings.HasPrefix(line, " ")
	switch {
	case !isTerminal && transient && !a.silence.over(time.Now()):
		return
	case !isTerminal:
		a.silence.begin(time.Now())
		fmt.Fprintln(a.err, line)
	case transient:
		fmt.Fprintf(a.err, "\r\x1b[K%s", cut(line, width-1))
	default:
		fmt.Fprintf(a.err, "\r\x1b[K%s\n", line)
	}
}

// warn reports an error after which the command continues.
func (a *app) warn(err error) {
	fmt.Fprintln(a.err, "dray: warning:", layout.PlainLines(err.Error()))
}

// endProgress clears a replaceable line that progress left.
func (a *app) endProgress() {
	if _, isTerminal := terminalWidth(a.err); isTerminal && !a.quiet {
		fmt.Fprint(a.err, "\r\x1b[K")
	}
}

// cut shortens a line to at most width characters.
func cut(s string, width int) string {
	runes := []rune(s)
	if width < 1 || len(runes) <= width {
		return s
	}
	return string(runes[:width-1]) + "…"
}

// width is the terminal's, on standard output; 0: no terminal.
func (a *app) width() int {
	width, _ := terminalWidth(a.out)
	return max(width, 0)
}

func terminalWidth(w io.Writer) (int, bool) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return width, err == nil
}
