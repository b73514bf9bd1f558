// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
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
		if _, err := host.NeedProgram("an image", need[0], need[1]); err != nil {
			return err
		}
	}
	return nil
}

// command is the program that makes a root file system. Its processes are in PID
// and mount namespaces that always end with it: removing the directory never meets
// a mount.
func (s *sources) command(packages []Part, left []string, root string) []string {
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
	for _, p := range packages {
		argv = append(argv, "--include="+p.Name)
	}
	return append(append(argv, s.suite, root), s.lines...)
}

// install makes a root file system of packages, without the files that are left out, in
// a directory that must not exist yet.
func (s *sources) install(ctx context.Context, packages []Part, left []string, root string) error {
	date, err := epoch()
	if err != nil {
		return err
	}
	return runTool(ctx, []string{epochVariable + "=" + date, "DEBIAN_FRONTEND=noninteractive"}, s.command(packages, left, root)...)
}

// make builds the image's root file system in a directory that must not exist yet.
// results is what was built from sources; empty: nothing.
func (s *sources) make(ctx context.Context, r *Recipe, results, root string) error {
	if err := s.install(ctx, r.Packages, left, root); err != nil {
		return err
	}
	if err := r.complete(ctx, results, root); err != nil {
		return err
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
	return nil
}

// complete adds to a root file system what no package has.
func (r *Recipe) complete(ctx context.Context, results, root string) error {
	local := filepath.Join(root, "usr/local")
	if results != "" {
		if err := copyTree(results, local); err != nil {
			return err
		}
	}
	libraries := results != ""
	for _, p := range r.Programs {
		from, err := ownProgram(p.Name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := writeNew(filepath.Join(local, folderOf(p.Name), p.Name), text, 0o755); err != nil {
			return err
		}
		libraries = libraries || isLibrary(p.Name)
	}
	for _, p := range r.Scripts {
		if err := writeNew(filepath.Join(local, "bin", p.Name), r.Files[p.Name], 0o755); err != nil {
			return err
		}
	}
	if !libraries {
		return nil
	}
	ldconfig, err := host.LookProgram("ldconfig")
	if err != nil {
		return err
	}
	return runTool(ctx, nil, ldconfig, "-r", root)
}

// runTool runs a command that ends with this process. Variables are added to its
// environment.
func runTool(ctx context.Context, variables []string, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(append(os.Environ(), "LC_ALL=C.UTF-8"), variables...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := runTied(cmd)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", toolName(argv), err, host.LastLines(said.String()))
	}
	return nil
}

// toolName is the program that a command line is about.
func toolName(argv []string) string {
	if i := slices.Index(argv, "--"); argv[0] == "unshare" && i > 0 {
		argv = argv[i+1:]
	}
	return filepath.Base(argv[0])
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
