// SPDX-License-Identifier: Apache-2.0

// Package library finds the shared libraries of this project that other programs load.
package library

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Variable names another folder to search.
const Variable = "DRAY_LIB"

// Library is a library of this project.
type Library struct {
	What  string // the beginning of errors, such as "the DPDK driver"
	File  string
	Build string // the command that builds it
	// Installed are patterns of folders in which packages put it, in addition to those
	// next to the program's.
	Installed []string
}

// Error says why a library cannot be loaded.
type Error struct {
	Reason string // one clause
	Fix    string
}

func (e *Error) Error() string { return e.Reason + ": " + e.Fix }

// Find returns the library's file. It searches the folder that DRAY_LIB names, or else
// the running program's folder, ../lib from there with the folders of architectures in
// it, and where packages put it. An error is an *Error.
func (l Library) Find() (string, error) {
	dirs, err := l.folders()
	if err != nil {
		return "", err
	}
	for _, dir := range dirs {
		file, err := l.in(dir)
		if !errors.Is(err, fs.ErrNotExist) {
			return file, err
		}
	}
	if err := Searchable(); err != nil {
		return "", l.unreadable(err)
	}
	return "", &Error{
		Reason: fmt.Sprintf("%s %s is not in %s", l.What, l.File, strings.Join(dirs, " nor in ")),
		Fix:    l.Build + ", or set " + Variable + " to its folder",
	}
}

func (l Library) folders() ([]string, error) {
	if dir := os.Getenv(Variable); dir != "" {
		return []string{dir}, nil
	}
	own, err := os.Executable()
	if err != nil {
		return nil, l.unreadable(fmt.Errorf("the folder of this program is not known: %w", err))
	}
	beside := filepath.Dir(own)
	lib := filepath.Join(filepath.Dir(beside), "lib")
	dirs := append([]string{beside, lib}, Folders(filepath.Join(lib, "*-linux-gnu*"))...)
	for _, dir := range Folders(l.Installed...) {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// Searchable returns nil if this process can read directories. Folders hides such errors, as
// filepath.Glob does: a process without descriptors finds nothing.
func Searchable() error {
	root, err := os.Open("/")
	if err != nil {
		return err
	}
	return root.Close()
}

// Folders are those that match the patterns, newest versions first.
func Folders(patterns ...string) []string {
	var found []string
	for _, pattern := range patterns {
		if folders, err := filepath.Glob(pattern); err == nil { // the pattern is well-formed
			found = append(found, folders...)
		}
	}
	slices.Sort(found)
	slices.Reverse(found)
	return found
}

// in searches one folder. It accepts nothing that another user could have put there: no
// part of the path may be world-writable, except directories such as /tmp, in which
// nobody can replace another user's files.
func (l Library) in(dir string) (string, error) {
	file, err := filepath.EvalSymlinks(filepath.Join(dir, l.File))
	if err == nil {
		file, err = filepath.Abs(file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err != nil {
		return "", l.unreadable(err)
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return "", &Error{Reason: file + " is not a file", Fix: l.Build + ", or set " + Variable + " to another folder"}
	}
	for part := file; part != "/"; part = filepath.Dir(part) {
		info, err := os.Stat(part)
		if err != nil {
			return "", l.unreadable(err)
		}
		if info.Mode().Perm()&0o002 != 0 && info.Mode()&os.ModeSticky == 0 {
			return "", &Error{
				Reason: fmt.Sprintf("%s is not safe to load, because every user may write to %s", file, part),
				Fix:    fmt.Sprintf("chmod o-w %s, or set %s to another folder", part, Variable),
			}
		}
	}
	return file, nil
}

func (l Library) unreadable(err error) *Error {
	return &Error{Reason: err.Error(), Fix: "set " + Variable + " to the folder of " + l.File}
}
