// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// MakeDir makes a directory with this mode, whatever the umask: users of functions must get
// through some, and many hosts give root a umask of 077.
func MakeDir(path string, mode fs.FileMode) error {
	if err := os.Mkdir(path, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// MakeFile makes a file with this content and mode, whatever the umask.
func MakeFile(path string, content []byte, mode fs.FileMode) error {
	if err := os.WriteFile(path, content, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// MakeDirs makes a directory and its parents, each as MakeDir does, unless they exist.
func MakeDirs(path string, mode fs.FileMode) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if parent := filepath.Dir(path); parent != path {
		if err := MakeDirs(parent, mode); err != nil {
			return err
		}
	}
	err := MakeDir(path, mode)
	if errors.Is(err, fs.ErrExist) {
		if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
			return nil // another process has made it meanwhile
		}
	}
	return err
}
