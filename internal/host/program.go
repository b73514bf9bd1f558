// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// standardPath are the directories of programs that PATH may lack: after a plain su it
// has no sbin, and a service may have none at all.
var standardPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

func searchPath() []string {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for _, dir := range standardPath {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// CompletePath adds the standard directories of programs that PATH lacks, also for what
// this process starts.
func CompletePath() error {
	return os.Setenv("PATH", strings.Join(searchPath(), string(filepath.ListSeparator)))
}

// LookProgram finds a host program, in the PATH or else in the standard directories. The
// error is exec.ErrNotFound, with the name, or names a file that may not be executed.
func LookProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil || strings.Contains(name, "/") {
		return path, executable(name, err)
	}
	for _, dir := range searchPath() {
		if !filepath.IsAbs(dir) { // exec.LookPath takes no program from there either
			continue
		}
		candidate := filepath.Join(dir, name)
		found, dirErr := exec.LookPath(candidate)
		if dirErr == nil {
			return found, nil
		}
		if refused := executable(candidate, dirErr); errors.Is(refused, unix.EACCES) {
			err = refused
		}
	}
	return "", err
}

// executable replaces the error of a file that exists and may not be executed.
func executable(path string, err error) error {
	if info, statErr := os.Stat(path); err != nil && statErr == nil && info.Mode().IsRegular() {
		return FaultOf(&fs.PathError{Op: "fork/exec", Path: path, Err: unix.EACCES})
	}
	return err
}

// OwnProgram finds a program of this project: next to the running one, where make
// build puts it, or in the PATH. The error is exec.ErrNotFound, with the name.
func OwnProgram(name string) (string, error) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return beside, nil
		}
	}
	return exec.LookPath(name)
}

// NeedProgram is LookProgram for a required program: the error is *Unsupported,
// with the Debian package that has the program.
func NeedProgram(what, name, pkg string) (string, error) {
	path, err := LookProgram(name)
	if !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	missing := &Unsupported{What: what, Why: "the program " + name + " is not installed", Cause: err}
	if pkg != "" {
		missing.Fix = "apt install " + pkg
	}
	return "", missing
}

// NeedFile is NeedProgram for a required file, by path.
func NeedFile(what, path, pkg string) (string, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &Unsupported{What: what, Why: path + " does not exist", Fix: "apt install " + pkg, Cause: err}
	}
	return path, err
}
