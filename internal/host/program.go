// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"os/exec"
	"path/filepath"
)

// LookProgram finds a host program, also in the system directories that PATH lacks
// after a plain su. The error is exec.ErrNotFound, with the name.
func LookProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path, dirErr := exec.LookPath(filepath.Join(dir, name)); dirErr == nil {
			return path, nil
		}
	}
	return "", err
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
	if err != nil {
		return "", &Unsupported{What: what, Why: "the program " + name + " is not installed", Fix: "apt install " + pkg}
	}
	return path, nil
}

// NeedFile is NeedProgram for a required file, by path.
func NeedFile(what, path, pkg string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "", &Unsupported{What: what, Why: path + " does not exist", Fix: "apt install " + pkg}
	}
	return path, nil
}
