// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os/exec"
	"path/filepath"
)

// LookProgram finds a host program, also in the system directories that PATH
// lacks after a plain su. The error is exec.ErrNotFound, with the name.
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
