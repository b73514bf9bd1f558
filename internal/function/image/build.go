// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/drayage/dray/internal/host"
)

// epochVariable sets the timestamps of a build, for reproducible builds; other
// tools use the same variable.
const epochVariable = "SOURCE_DATE_EPOCH"

// defaultEpoch is 2025-01-01 in UTC.
const defaultEpoch = "1735689600"

func epoch() (string, error) {
	text := os.Getenv(epochVariable)
	if text == "" {
		return defaultEpoch, nil
	}
	if _, err := strconv.ParseUint(text, 10, 40); err != nil {
		return "", fmt.Errorf("%s=%q is not a number of seconds since 1970", epochVariable, text)
	}
	return text, nil
}

// left are files that a function does not need: mmdebstrap installs packages
// without them.
var left = []string{
	"/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/lintian/*",
	"/usr/include/*", "/usr/lib/*/*.a",
}

// ofTheBuild are files in the root file system that depend on this host or on the
// build time.
var ofTheBuild = []string{
	"etc/apt/sources.list", "etc/hostname", "etc/resolv.conf", "etc/machine-id",
	"var/cache/ldconfig/aux-cache", "var/log/*.log", "var/log/apt/*", "var/lib/apt/lists/*", "var/cache/apt/*.bin",
}

// Missing is why no image can be built here; nil if one can.
func Missing() error {
	if os.Geteuid() != 0 {
		return &host.Unsupported{What: "an image", Why: "mmdebstrap installs packages into another root", Fix: "run it as root"}
	}
	for _, need := range [][2]string{{"mmdebstrap", "mmdebstrap"}, {"unshare", "util-linux"}, {"apt-get", "apt"}, {"tar", "tar"}} {
		if _, err := exec.LookPath(need[0]); err != nil {
			return &host.Unsupported{What: "an image", Why: need[0] + " is missing", Fix: "apt-get install " + need[1]}
		}
	}
	return nil
}

// command is the program that makes a root file system. Its processes are in PID
// and mount namespaces that always end with it: removing the directory never meets
// a mount.
func (s *sources) command(r *Recipe, root string) []string {
	argv := []string{
		"unshare", "--mount", "--mount-proc", "--pid", "--fork", "--kill-child=KILL", "--",
		"mmdebstrap", "--mode=root", "--variant=minbase",
	}
	for _, pattern := range left {
		argv = append(argv, "--dpkgopt=path-exclude="+pattern)
	}
	// Each package keeps its licence.
	argv = append(argv, "--dpkgopt=path-include=/usr/share/doc/*/copyright", `--aptopt=APT::Install-Recommends "false"`)
	for _, option := range s.options {
		argv = append(argv, "--aptopt="+option)
	}
	for _, p := range r.Packages {
		argv = append(argv, "--include="+p.Name)
	}
	return append(append(argv, s.suite, root), s.lines...)
}

// make builds the root file system in a directory that must not exist yet.
func (s *sources) make(ctx context.Context, r *Recipe, root string) error {
	date, err := epoch()
	if err != nil {
		return err
	}
	argv := s.command(r, root)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), epochVariable+"="+date, "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := runTied(cmd); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("mmdebstrap: %w: %s", err, lastLines(said.String(), 5))
	}
	for _, pattern := range ofTheBuild {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := os.RemoveAll(file); err != nil {
				return err
			}
		}
	}
	for _, p := range r.Programs {
		if err := copyProgram(p.Name, filepath.Join(root, "usr/local/bin", p.Name)); err != nil {
			return err
		}
	}
	return nil
}

// runTied runs a command that is killed when this process ends. The kernel ties
// that to the starting thread, so the thread waits for the command.
func runTied(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		ended <- cmd.Run()
	}()
	return <-ended
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}

func ownProgram(name string) (string, error) {
	path, err := host.OwnProgram(name)
	if err != nil {
		return "", fmt.Errorf("the program %s is missing: make build puts it next to dray", name)
	}
	return path, nil
}

func copyProgram(name, to string) (err error) {
	from, err := ownProgram(name)
	if err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), os.Chmod(to, 0o755)) // whatever the umask
}
