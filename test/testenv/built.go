// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

// Built is the path of a program that `make build` makes in bin/. It skips the
// test if the program has not been built.
func Built(t testing.TB, name string) string {
	t.Helper()
	return BuiltBy(t, "build", "bin", name)
}

// BuiltBy is the path of a program, as its parts below the repository, that another
// target of make builds. It skips the test if the program has not been built.
func BuiltBy(t testing.TB, target string, parts ...string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
	}
	name := filepath.Join(parts...)
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		unmet(t, "needs the program "+name+": run make "+target)
	}
	return path
}
