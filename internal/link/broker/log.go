// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// logger writes lines; several goroutines may.
type logger struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *logger) print(format string, args ...any) {
	if l.w == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, "%s "+format+"\n", append([]any{time.Now().UTC().Format("2006-01-02T15:04:05.000Z")}, args...)...)
}

// limitedLog is for lines that a hostile end can cause: a burst, then one a
// minute. The log is never truncated.
type limitedLog struct {
	log     *logger
	prefix  string
	lines   bucket
	skipped int
}

func (l *logger) limited(prefix string) *limitedLog {
	return &limitedLog{log: l, prefix: prefix, lines: bucket{burst: 50, every: time.Minute}}
}

func (l *limitedLog) print(format string, args ...any) {
	if !l.lines.take(time.Now()) {
		l.skipped++
		return
	}
	if l.skipped > 0 {
		l.log.print("%s%d lines were left out", l.prefix, l.skipped)
		l.skipped = 0
	}
	l.log.print("%s%s", l.prefix, fmt.Sprintf(format, args...))
}
