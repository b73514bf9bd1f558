// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/parse"
)

// dirFailed holds the logs of chains that did not come up, by chain, until the next chain of
// that name or `dray gc`. No chain has the name.
const dirFailed = ".failed"

// The bounds of what is kept: the end of each log, all logs of a chain, and chains.
const (
	mostOfLog    = 256 << 10 // bytes
	mostOfChain  = 4 << 20   // bytes
	mostOfFailed = 8
	mostLogs     = 256 // of a chain
)

// logPatterns find the logs in a chain's directory: of functions and the chain's own
// processes, of guests, and of switches. Nothing below a function's root is looked at.
var logPatterns = []string{"log/*.log", "fn/*/guest/*.log", "link/*/*/*.log", "link/*/*/*/*.log", "link/*/*/*/log/*.log"}

func (n *Node) failedDir(chain string) string { return filepath.Join(n.StateDir, dirFailed, chain) }

// FailedLog is the log of a function of a chain that is not up because it failed to come
// up; empty: there is none.
func (n *Node) FailedLog(chain, function string) string {
	if !parse.ValidName(chain) || !parse.ValidName(function) {
		return ""
	}
	path := filepath.Join(n.failedDir(chain), "log", function+".log")
	if real, err := filepath.EvalSymlinks(path); err != nil || real != path {
		return ""
	}
	return path
}

// Fail removes a chain that did not come up. Its logs stay, and the error says where.
func (l *Live) Fail(ctx context.Context, why error) error {
	if full := l.checkSpace(); full != nil && errors.Is(why, unix.ENOSPC) {
		why = fmt.Errorf("%w: %w", why, full)
	}
	if ctx.Err() == nil { // an interrupt needs no explanation
		l.keepLogs()
		why = l.pointToLogs(why)
	}
	return errors.Join(why, l.Remove(context.WithoutCancel(ctx)))
}

// pointToLogs adds to an error where the logs are, if any are kept.
func (l *Live) pointToLogs(err error) error {
	if err == nil || !l.kept {
		return err
	}
	return errors.Join(err, fmt.Errorf("the logs are kept in %s until the next dray up of %s, or dray gc", l.node.failedDir(l.Chain.Name), l.Chain.Name))
}

// keepLogs copies the logs that the chain has now. What cannot be copied is left out: the
// error that led here matters more.
func (l *Live) keepLogs() {
	if host.CheckSpace(l.node.StateDir, mostOfChain) != nil {
		return
	}
	if errors.Join(onlyDir(filepath.Dir(l.node.failedDir(l.Chain.Name))), onlyDir(l.node.failedDir(l.Chain.Name))) != nil {
		return
	}
	var logs []string
	for _, pattern := range logPatterns {
		logs = append(logs, matching(l.dir, strings.Split(pattern, "/"))...)
	}
	logs = logs[:min(len(logs), mostLogs)]
	for _, log := range logs {
		l.kept = l.keepLog(log, min(mostOfLog, mostOfChain/int64(len(logs)))) || l.kept
	}
	l.node.forgetFailed()
}

// matching are the files below a directory that match a pattern, segment by segment. It follows
// no link: filepath.Glob would.
func matching(dir string, pattern []string) []string {
	var found []string
	entries, _ := os.ReadDir(dir) // else there is none
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch match, _ := filepath.Match(pattern[0], e.Name()); {
		case !match:
		case len(pattern) == 1:
			found = append(found, path)
		case e.IsDir():
			found = append(found, matching(path, pattern[1:])...)
		}
	}
	return found
}

// keepLog copies the end of a log, and reports whether there was any.
func (l *Live) keepLog(log string, most int64) bool {
	from, err := host.OpenRegular(log, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	path := filepath.Join(l.node.failedDir(l.Chain.Name), strings.TrimPrefix(log, l.dir))
	if os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return false
	}
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return false
	}
	defer to.Close()
	n, _ := io.Copy(to, io.NewSectionReader(from, max(0, info.Size()-most), most))
	return n > 0
}

// forget removes the kept logs of a chain.
func (n *Node) forget(chain string) error {
	all := filepath.Join(n.StateDir, dirFailed)
	if err := onlyDir(all); err != nil {
		return err
	}
	err := os.RemoveAll(n.failedDir(chain))
	_ = os.Remove(all) // if it was the last
	return err
}

// forgetFailed removes the oldest of too many failed chains.
func (n *Node) forgetFailed() {
	dir := filepath.Join(n.StateDir, dirFailed)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) <= mostOfFailed {
		return
	}
	slices.SortStableFunc(entries, func(a, b os.DirEntry) int { return cmp.Compare(modified(a), modified(b)) })
	for _, e := range entries[:len(entries)-mostOfFailed] {
		_ = os.RemoveAll(filepath.Join(dir, e.Name()))
	}
}

// modified is when an entry of a directory last changed.
func modified(e os.DirEntry) int64 {
	info, err := e.Info()
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}
