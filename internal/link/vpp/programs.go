// SPDX-License-Identifier: Apache-2.0

package vpp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/sidecar"
)

// Names of VPP's programs.
const (
	program = "vpp"
	console = "vppctl"
)

// variable names the folder of an installed VPP.
const variable = "DRAY_VPP"

// home is the folder of VPP inside its container, whatever it is on the host.
const home = "/opt/vpp"

// howToGet is the fix if there is no VPP.
const howToGet = "build VPP as docs/switches.md says and set " + variable + " to its folder, or install the packages of fd.io"

// installation is a VPP on this host. VPP finds its plugins from its own path, and
// its libraries by the library path, so its folder may be anywhere.
type installation struct {
	root string // the host's folder, without symbolic links; it has bin and lib
	libs string // the folder of its libraries, below root
}

func (i installation) program(name string) string { return filepath.Join(i.root, "bin", name) }

// inside is the path of a program inside the container.
func (i installation) inside(name string) string { return filepath.Join(home, "bin", name) }

// binds make VPP's programs and libraries visible to it.
func (i installation) binds() []sidecar.Bind {
	var list []sidecar.Bind
	for _, sub := range []string{"bin", "lib"} {
		list = append(list, sidecar.Bind{Source: filepath.Join(i.root, sub), Target: filepath.Join(home, sub)})
	}
	return list
}

// environment is that of VPP's programs, with VPP's folder at root.
func (i installation) environment(root string) []string {
	return []string{"LD_LIBRARY_PATH=" + filepath.Join(root, i.libs)}
}

// find finds VPP: in the folder that DRAY_VPP names, or else by vpp in the PATH.
func find() (installation, error) {
	if dir := os.Getenv(variable); dir != "" {
		if !filepath.IsAbs(dir) {
			return installation{}, unsupported(fmt.Sprintf("%s=%s is not an absolute path", variable, dir), "set "+variable+" to the absolute path of VPP's folder")
		}
		root, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return installation{}, missing(err, fmt.Sprintf("%s: %v", variable, err))
		}
		return installedIn(root)
	}
	path, err := host.LookProgram(program)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return installation{}, missing(err, "no vpp binary")
	}
	root, bin := filepath.Split(filepath.Dir(path))
	if bin != "bin" {
		return installation{}, unsupported(path+" is not in a folder bin beside a folder lib", "set "+variable+" to the folder of VPP's bin and lib")
	}
	return installedIn(filepath.Clean(root))
}

// installedIn checks the VPP of a folder: it must be complete, and no user but root
// may have made or be able to change what runs.
func installedIn(root string) (installation, error) {
	i := installation{root: root}
	for _, name := range []string{program, console} {
		if _, err := host.LookProgram(i.program(name)); err != nil {
			return installation{}, missing(err, root+" has no VPP: "+err.Error())
		}
	}
	plugins, err := filepath.Glob(filepath.Join(root, "lib", "*", "vpp_plugins"))
	if flat := filepath.Join(root, "lib", "vpp_plugins"); err == nil && exists(flat) {
		plugins = append(plugins, flat)
	}
	if len(plugins) != 1 {
		return installation{}, unsupported(fmt.Sprintf("%s must have one folder of plugins, lib/vpp_plugins or lib/*/vpp_plugins; it has %d", root, len(plugins)), howToGet)
	}
	libs := filepath.Dir(plugins[0])
	if i.libs, err = filepath.Rel(root, libs); err != nil {
		return installation{}, err
	}
	for _, path := range []string{i.program(program), i.program(console), plugins[0]} {
		if err := safePath(path); err != nil {
			return installation{}, err
		}
	}
	for _, dir := range []string{libs, plugins[0]} {
		if err := safeEntries(dir); err != nil {
			return installation{}, err
		}
	}
	return i, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// safePath checks a path and each folder above it.
func safePath(path string) error {
	for part := path; part != "/"; part = filepath.Dir(part) {
		info, err := os.Stat(part)
		if err != nil {
			return err
		}
		if err := safe(part, info); err != nil {
			return err
		}
	}
	return nil
}

// safeEntries checks what is in a folder of libraries.
func safeEntries(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) { // a link to nothing; nothing is loaded
			continue
		}
		if err != nil {
			return err
		}
		if err := safe(path, info); err != nil {
			return err
		}
	}
	return nil
}

// safe checks that a file or folder is root's, that no other user may write to it,
// and that VPP's user, who is nobody on the host, may use it.
func safe(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode()
	needed := fs.FileMode(0o004)
	if mode.IsDir() {
		needed = 0o001
	}
	switch {
	case !ok || stat.Uid != 0:
		return unsupported(path+" is not root's, so its owner could change the VPP that runs", "chown root "+path)
	case mode.Perm()&0o002 != 0 && mode&os.ModeSticky == 0:
		return unsupported("every user may write to "+path+", and so change the VPP that runs", "chmod o-w "+path)
	case mode.Perm()&needed == 0:
		return unsupported("VPP runs as a user of its own, who cannot use "+path, "chmod o+rX "+path)
	}
	return nil
}

// missing is an error that may mean that something does not exist: only then VPP is missing.
func missing(err error, why string) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return unsupported(why, howToGet)
	}
	return err
}

func unsupported(why, fix string) error { return &host.Unsupported{What: Name, Why: why, Fix: fix} }

// versionTimeout bounds the time to print the version.
const versionTimeout = 30 * time.Second

// version asks VPP for its version, which also loads its libraries.
func (i installation) version(ctx context.Context) (string, error) {
	out, err := host.Helper{Program: i.program(program), Args: []string{"--version"}, Env: i.environment(i.root), Limit: versionTimeout}.Output(ctx)
	if lacksLibraries(err) {
		return "", unsupported(err.Error(), "install the libraries that it needs, or build VPP on this host as docs/switches.md says")
	}
	if err != nil {
		return "", err
	}
	version, ok := parseVersion(out)
	if !ok {
		return "", fmt.Errorf("%s --version does not report its version: %.200s", i.program(program), out)
	}
	return version, nil
}

// lacksLibraries reports whether the loader of shared libraries ended the program.
func lacksLibraries(err error) bool {
	const status = 127 // ld.so(8)
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == status
}

// parseVersion reads "vpp v26.06-release built by root on host at 2026-11-25".
func parseVersion(out string) (string, bool) {
	fields := strings.Fields(out)
	if len(fields) < 2 || fields[0] != program {
		return "", false
	}
	return strings.TrimPrefix(fields[1], "v"), true
}
