// SPDX-License-Identifier: Apache-2.0

// Package oci runs runc to start, kill and delete the containers of functions and
// switches.
package oci

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/host"
)

// Container is one runc container, whether it exists or not.
type Container struct {
	ID     string // unique in State
	Bundle string // its directory, which WriteConfig makes
	State  string // runc's own directory, for several
}

// Config is the bundle's configuration: a specs.Spec, or a specs.Process for one
// that joins a container.
func (c Container) Config() string { return filepath.Join(c.Bundle, "config.json") }

// PIDFile is where runc writes the process's id.
func (c Container) PIDFile() string { return filepath.Join(c.Bundle, "pid") }

func (c Container) log() string { return filepath.Join(c.Bundle, "log.json") }

// WriteConfig makes the bundle; it replaces an earlier one.
func (c Container) WriteConfig(config any) error {
	if err := os.MkdirAll(c.Bundle, 0o700); err != nil {
		return err
	}
	for _, stale := range []string{c.PIDFile(), c.log()} {
		if err := os.Remove(stale); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	content, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(c.Config(), content, 0o600)
}

// Command is a runc call about the container, for a child that lives on; its errors go to
// the container's log. When ctx ends, only runc is killed, not its children.
func (c Container) Command(ctx context.Context, verb string, args ...string) (*exec.Cmd, error) {
	path, err := Program()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, c.arguments(verb, args)...)
	cmd.Dir = "/"
	// Its own session: the terminal's interrupt is for dray alone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}

func (c Container) arguments(verb string, args []string) []string {
	return append([]string{"--root", c.State, "--log", c.log(), "--log-format", "json", verb}, args...)
}

// program is also the name of its Debian package.
const program = "runc"

// Program finds runc.
func Program() (string, error) { return host.NeedProgram("container", program, program) }

// limit bounds such a call that ends: a container that is started takes seconds, and far longer on
// a busy machine.
const limit = 2 * time.Minute

// Helper is such a call that ends.
func (c Container) Helper(place host.Place, verb string, args ...string) host.Helper {
	return host.Helper{Program: program, Args: c.arguments(verb, args), Package: program, Place: place, Dir: "/", Limit: limit}
}

// Run runs such a call until it ends. A non-nil log gets the output of its children.
func (c Container) Run(ctx context.Context, place host.Place, log *os.File, verb string, args ...string) error {
	if err := os.Remove(c.log()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	h := c.Helper(place, verb, args...)
	if log != nil {
		h.Stdout, h.Stderr = log, log
	}
	_, err := h.Run(ctx)
	var failed *host.HelperError
	if errors.As(err, &failed) {
		return fmt.Errorf("runc %s: %w: %s", verb, failed.Fault, c.LastError())
	}
	return err
}

// Delete kills and deletes the container, if it exists.
func (c Container) Delete(ctx context.Context, place host.Place) error {
	if _, err := os.Stat(filepath.Join(c.State, c.ID)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return c.Run(ctx, place, nil, "delete", "--force", c.ID)
}

// NoLog is LastError if runc ended before it opened its log. It may have printed why.
const NoLog = "it left no log"

// LastError is the last error that runc logged.
func (c Container) LastError() string {
	f, err := os.Open(c.log())
	if err != nil {
		return NoLog
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

// PID is the host pid of the process that runc started; 0 before.
func (c Container) PID() int {
	content, err := os.ReadFile(c.PIDFile())
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(string(content))
	if err != nil {
		return 0
	}
	return pid
}
