// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// progressEach is how often a build's progress is reported at most.
const progressEach = time.Second

// shownLines is how many of the last lines of a failed build are shown.
const shownLines = 15

// buildStep is how ninja begins a line.
var buildStep = regexp.MustCompile(`^\[(\d+)/(\d+)\]`)

// buildLog receives the output of a build script.
type buildLog struct {
	file *os.File
	name string // the image's
	say  func(string)
	said time.Time
	rest []byte   // a line without its end
	last []string // at most shownLines
}

// newBuildLog begins the log file of an image's build.
func newBuildLog(name string, say func(string)) (*buildLog, error) {
	file, err := os.Create(filepath.Join(Folder(), name+".log"))
	return &buildLog{file: file, name: name, say: say}, err
}

func (l *buildLog) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return l.file.Write(p)
		}
		l.rest = rest
		l.line(string(line))
	}
}

func (l *buildLog) line(text string) {
	l.last = append(l.last, text)
	l.last = l.last[max(0, len(l.last)-shownLines):]
	if step := buildStep.FindStringSubmatch(text); step != nil && time.Since(l.said) >= progressEach {
		l.said = time.Now()
		l.say(fmt.Sprintf("  image %s: step %s of %s", l.name, step[1], step[2]))
	}
}

// failed is the error of a build, with its last lines. The log file stays.
func (l *buildLog) failed(err error) error {
	if len(l.rest) > 0 {
		l.line(string(l.rest))
	}
	err = fmt.Errorf("%s: %w; its output is in %s, and ends with:\n  %s", buildScript, err, l.file.Name(), strings.Join(l.last, "\n  "))
	return errors.Join(err, l.file.Close())
}

// remove removes the log file.
func (l *buildLog) remove() error {
	return errors.Join(l.file.Close(), os.Remove(l.file.Name()))
}
