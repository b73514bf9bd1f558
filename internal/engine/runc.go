// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/drayage/dray/internal/host"
)

// runc runs runc to its end. With a log, that is the output of what it starts.
func (e Engine) runc(ctx context.Context, log *os.File, args ...string) error {
	program, err := lookup()
	if err != nil {
		return err
	}
	if err := os.Remove(e.runcLog()); err != nil && !os.IsNotExist(err) {
		return err
	}
	args = append([]string{"--root", e.runcState(), "--log", e.runcLog(), "--log-format", "json"}, args...)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = "/"
	// A session of its own: the terminal's interrupt is for dray alone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if log != nil {
		cmd.Stdout, cmd.Stderr = log, log
	}
	if err := (host.Place{Cgroup: e.helper()}).Start(cmd); err != nil {
		return fmt.Errorf("runc: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("runc: %w: %s", errors.Join(err, ctx.Err()), e.runcError())
	}
	return nil
}

func lookup() (string, error) { return host.NeedProgram("switch in a container", "runc", "runc") }

// Probe reports whether this host can run engines, as an *host.Unsupported.
func Probe() error {
	if _, err := lookup(); err != nil {
		return err
	}
	return host.ProbeUserNetns(host.UserMapping{HostID: firstID, Size: 1})
}

// runcError is the last error that runc has logged.
func (e Engine) runcError() string {
	f, err := os.Open(e.runcLog())
	if err != nil {
		return "it left no log"
	}
	defer f.Close()
	reason := "its log holds no error"
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var entry struct{ Level, Msg string }
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Level == "error" {
			reason = entry.Msg
		}
	}
	return reason
}

// lastWords is how much of a log's end an error quotes, in lines.
const lastWords = 5

// LastWords is the end of the process's log, to follow an error.
func (e Engine) LastWords() string {
	text, err := os.ReadFile(e.Log())
	if text = bytes.TrimSpace(text); err != nil || len(text) == 0 {
		return ""
	}
	lines := strings.Split(string(text), "\n")
	return "; its log ends: " + strings.Join(lines[max(0, len(lines)-lastWords):], " | ")
}

// Logged reports whether the process's log has the text beyond an offset.
func (e Engine) Logged(offset int64, text string) bool {
	f, err := os.Open(e.Log())
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

// LogSize is how long the log is now, in bytes.
func (e Engine) LogSize() int64 {
	info, err := os.Stat(e.Log())
	if err != nil {
		return 0
	}
	return info.Size()
}
