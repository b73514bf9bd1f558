// SPDX-License-Identifier: Apache-2.0

package dpdk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// DriverFile is the file name of net_dray.
const DriverFile = "librte_net_dray.so"

// libVariable names another folder to search for the driver.
const libVariable = "DRAY_LIB"

// DriverError says why net_dray, or another library, cannot be loaded.
type DriverError struct {
	Reason string // one clause
	Fix    string
}

func (e *DriverError) Error() string { return e.Reason + ": " + e.Fix }

// FindDriver returns the file of net_dray. It searches the folder that DRAY_LIB names,
// or else the running program's folder, ../lib from there, and DPDK's driver folders.
// An error is a *DriverError.
func FindDriver() (string, error) {
	return FindLibrary("the DPDK driver", DriverFile, "make pmd", driverDirs)
}

// FindLibrary is FindDriver for any library that functions load; installed are patterns
// of the folders in which packages put it, and build makes it.
func FindLibrary(what, name, build string, installed []string) (string, error) {
	var dirs []string
	if dir := os.Getenv(libVariable); dir != "" {
		dirs = []string{dir}
	} else {
		own, err := os.Executable()
		if err != nil {
			return "", &DriverError{Reason: fmt.Sprintf("the folder of this program is not known: %v", err), Fix: "set DRAY_LIB to the folder of " + name}
		}
		beside := filepath.Dir(own)
		dirs = append([]string{beside, filepath.Join(filepath.Dir(beside), "lib")}, installedDirs(installed)...)
	}
	for _, dir := range dirs {
		file, err := findIn(dir, name)
		if !errors.Is(err, fs.ErrNotExist) {
			return file, err
		}
	}
	return "", &DriverError{
		Reason: fmt.Sprintf("%s %s is not in %s", what, name, strings.Join(dirs, " nor in ")),
		Fix:    build + ", or set DRAY_LIB to its folder",
	}
}

// findIn searches one folder. It accepts nothing that another user could have put
// there: no part of the path may be world-writable, except directories such as /tmp, in
// which nobody can replace another user's files.
func findIn(dir, name string) (string, error) {
	file, err := filepath.EvalSymlinks(filepath.Join(dir, name))
	if err == nil {
		file, err = filepath.Abs(file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err != nil {
		return "", &DriverError{Reason: err.Error(), Fix: "set DRAY_LIB to the folder of " + name}
	}
	for part := file; part != "/"; part = filepath.Dir(part) {
		info, err := os.Stat(part)
		if err != nil {
			return "", &DriverError{Reason: err.Error(), Fix: "set DRAY_LIB to the folder of " + name}
		}
		if info.Mode().Perm()&0o002 != 0 && info.Mode()&os.ModeSticky == 0 {
			return "", &DriverError{
				Reason: fmt.Sprintf("%s is not safe to load, because every user may write to %s", file, part),
				Fix:    fmt.Sprintf("chmod o-w %s, or set DRAY_LIB to another folder", part),
			}
		}
	}
	return file, nil
}
