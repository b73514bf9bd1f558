// SPDX-License-Identifier: Apache-2.0

package vpp

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// installed makes a folder like an installed VPP's, whose vpp is that script.
func installed(t *testing.T, script string) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{root, filepath.Dir(root)} { // the latter is closed to others
		testenv.Must(t, os.Chmod(dir, 0o755))
	}
	plugins := filepath.Join(root, "lib", "x86_64-linux-gnu", "vpp_plugins")
	testenv.Must(t, os.MkdirAll(plugins, 0o755))
	testenv.Must(t, os.WriteFile(filepath.Join(plugins, "memif_plugin.so"), nil, 0o644))
	testenv.Must(t, os.Mkdir(filepath.Join(root, "bin"), 0o755))
	for _, name := range []string{program, console} {
		testenv.Must(t, os.WriteFile(filepath.Join(root, "bin", name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	return root
}

// answers prints a version, and fails without the folder of the libraries.
const answers = `case $LD_LIBRARY_PATH in */lib/x86_64-linux-gnu) echo "vpp v26.06-release built by root on build at 2026-11-25" ;; *) exit 127 ;; esac`

// TestFind: DRAY_VPP, or else the PATH, names a VPP, which may be in any folder.
func TestFind(t *testing.T) {
	testenv.Root(t)
	root := installed(t, answers)
	link := filepath.Join(t.TempDir(), "vpp")
	testenv.Must(t, os.Symlink(root, link))
	for _, c := range []struct{ name, variable, path string }{
		{"by DRAY_VPP", root, ""}, {"by a link", link, ""}, {"in PATH", "", filepath.Join(root, "bin")},
	} {
		t.Setenv(variable, c.variable)
		t.Setenv("PATH", c.path+":/bin:/usr/bin")
		i, err := find()
		if err != nil || i.root != root || i.environment(home)[0] != "LD_LIBRARY_PATH=/opt/vpp/lib/x86_64-linux-gnu" {
			t.Errorf("%s: %+v, %v", c.name, i, err)
		}
		if version, err := i.version(context.Background()); version != "26.06-release" {
			t.Errorf("%s: version %q, %v", c.name, version, err)
		}
	}
}

// TestRefused: a folder that is no VPP, or one that another user could change, is
// refused, and the error names the fix.
func TestRefused(t *testing.T) {
	testenv.Root(t)
	for _, c := range []struct {
		name      string
		spoil     func(root string) error
		why, help string
	}{
		{"no program", func(r string) error { return os.Remove(filepath.Join(r, "bin", console)) }, "vppctl", "docs/switches.md"},
		{"no plugins", func(r string) error { return os.RemoveAll(filepath.Join(r, "lib", "x86_64-linux-gnu", "vpp_plugins")) }, "it has 0", "docs/switches.md"},
		{"two folders of plugins", func(r string) error { return os.Mkdir(filepath.Join(r, "lib", "vpp_plugins"), 0o755) }, "it has 2", "docs/switches.md"},
		{"another owner", func(r string) error { return os.Chown(filepath.Join(r, "bin", program), 1, -1) }, "bin/vpp is not root's", "chown root"},
		{"another owner of the folder", func(r string) error { return os.Chown(r, 1, -1) }, "is not root's", "chown root"},
		{"another owner of a plugin", func(r string) error {
			return os.Chown(filepath.Join(r, "lib", "x86_64-linux-gnu", "vpp_plugins", "memif_plugin.so"), 1, -1)
		}, "memif_plugin.so is not root's", "chown root"},
		{"a library that all may write", func(r string) error {
			file := filepath.Join(r, "lib", "x86_64-linux-gnu", "libvlib.so")
			return errors.Join(os.WriteFile(file, nil, 0o644), os.Chmod(file, 0o666))
		}, "every user may write to", "chmod o-w"},
		{"a folder that VPP cannot enter", func(r string) error { return os.Chmod(r, 0o700) }, "cannot use", "chmod o+rX"},
	} {
		root := installed(t, answers)
		testenv.Must(t, c.spoil(root))
		t.Setenv(variable, root)
		check(t, c.name, c.why, c.help)
	}
	for _, c := range []struct{ name, variable, why, help string }{
		{"relative", "opt/vpp", "not an absolute path", "absolute path"},
		{"missing", "/nonexistent/vpp", "no such file", "docs/switches.md"},
	} {
		t.Setenv(variable, c.variable)
		check(t, c.name, c.why, c.help)
	}
}

func check(t *testing.T, name, why, help string) {
	t.Helper()
	var u *host.Unsupported
	if _, err := find(); !errors.As(err, &u) || !strings.Contains(u.Why, why) || !strings.Contains(u.Fix, help) {
		t.Errorf("%s: %v", name, err)
	}
}

// TestVersion: what VPP says if it does not start reaches the user. Only the loader's status means
// that libraries are missing.
func TestVersion(t *testing.T) {
	testenv.Root(t)
	const lacking = "echo libx.so is missing >&2; exit 127"
	for script, want := range map[string]string{
		lacking:                          "libx.so is missing",
		"echo no huge pages >&2; exit 1": "no huge pages",
		"echo Vim 9":                     "does not report its version",
	} {
		t.Setenv(variable, installed(t, script))
		i, err := find()
		testenv.Must(t, err)
		version, err := i.version(context.Background())
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, host.ErrUnsupported) != (script == lacking) {
			t.Errorf("%s: version %q, %v", script, version, err)
		}
	}
	root := installed(t, answers)
	testenv.Must(t, os.Chmod(filepath.Join(root, "bin", program), 0o644))
	t.Setenv(variable, root)
	if _, err := find(); err == nil || errors.Is(err, host.ErrUnsupported) || !strings.Contains(err.Error(), "may not be executed") {
		t.Errorf("a program that may not be executed: %v", err)
	}
}
