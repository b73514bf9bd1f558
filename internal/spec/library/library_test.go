// SPDX-License-Identifier: Apache-2.0

package library

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var some = Library{What: "the library", File: "libdray_some.so", Build: "make some"}

func place(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, some.File)
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// refused calls Find, which must fail and say so.
func refused(t *testing.T, l Library, reason, fix string) {
	t.Helper()
	file, err := l.Find()
	var why *Error
	if !errors.As(err, &why) || !strings.Contains(why.Reason, reason) || !strings.Contains(why.Fix, fix) {
		t.Errorf("got %q, %v; want an error with %q and %q", file, err, reason, fix)
	}
}

func found(t *testing.T, l Library, want string) {
	t.Helper()
	if file, err := l.Find(); err != nil || file != want {
		t.Errorf("got %q, %v; want %s", file, err, want)
	}
}

// TestFolderOfTheVariable: it is the only one that is searched.
func TestFolderOfTheVariable(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	t.Setenv(Variable, dir)
	l := some
	l.Installed = []string{other}
	place(t, other)
	refused(t, l, "the library libdray_some.so is not in "+dir, "make some, or set DRAY_LIB")
	file := place(t, dir)
	found(t, l, file)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	refused(t, l, "every user may write to "+dir, "chmod o-w "+dir)
}

// TestFolderIsNotTheFile: a folder of that name is not loaded.
func TestFolderIsNotTheFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(Variable, dir)
	if err := os.Mkdir(filepath.Join(dir, some.File), 0o755); err != nil {
		t.Fatal(err)
	}
	refused(t, some, "is not a file", "make some")
}

// TestInstalled: of several versions, the newest folder that has it.
func TestInstalled(t *testing.T) {
	t.Setenv(Variable, "")
	dir := t.TempDir()
	l := some
	l.Installed = []string{filepath.Join(dir, "pmds-*")}
	refused(t, l, "is not in", "make some")
	want := place(t, filepath.Join(dir, "pmds-23.0"))
	if err := os.Mkdir(filepath.Join(dir, "pmds-25.0"), 0o755); err != nil {
		t.Fatal(err)
	}
	found(t, l, want)
}

// TestNextToTheProgram: before any installed one. Not parallel: the folder is the
// test's own.
func TestNextToTheProgram(t *testing.T) {
	t.Setenv(Variable, "")
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := some
	l.Installed = []string{t.TempDir()}
	place(t, l.Installed[0])
	beside := filepath.Dir(own)
	for _, dir := range []string{filepath.Join(beside, "../lib/x86_64-linux-gnu"), filepath.Join(beside, "../lib"), beside} {
		want := place(t, dir)
		t.Cleanup(func() { os.Remove(want) })
		found(t, l, filepath.Clean(want))
	}
}
