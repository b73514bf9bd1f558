// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
)

// rootfs is a tree with the program /opt/bin/prog, a link /opt/bin/alias to it, an
// absolute link, and a non-executable file.
func rootfs(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	bin := filepath.Join(root, "opt/bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"prog": 0o755, "data": 0o644} {
		if err := os.WriteFile(filepath.Join(bin, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"alias": "prog", "absolute": "/opt/bin/prog", "loop": "loop", "outside": "/bin/sh"} {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"hostbin": "/bin", "climb": "../../../../../../../../bin", "inner": "/opt/bin", "up": "opt/../opt"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestCommandsAreLookedUpInTheFunctionsRoot(t *testing.T) {
	root := rootfs(t)
	own := map[string]string{"PATH": "/opt/bin"}
	for _, c := range []struct {
		function chain.Function
		want     string // of the violation; empty: none
	}{
		{chain.Function{Runtime: chain.RuntimeRunc, Command: []string{"sh"}}, ""},
		{chain.Function{Runtime: chain.RuntimeProcess, Command: []string{"slep", "infinity"}}, "this host has no such program in the function's PATH"},
		{chain.Function{Runtime: chain.RuntimeProcess, Command: []string{"/bin/sh"}}, ""},
		{chain.Function{Runtime: chain.RuntimeProcess, Command: []string{"/etc/passwd"}}, "this host has no such program"},
		{chain.Function{Runtime: chain.RuntimeProcess, Command: []string{"sh"}, Env: map[string]string{"PATH": "/nowhere"}}, "/nowhere"},
		{chain.Function{Runtime: chain.RuntimeRunc, Rootfs: root, Command: []string{"sh"}}, "the root file system " + root},
		{chain.Function{Runtime: chain.RuntimeRunc, Rootfs: root, Env: own, Command: []string{"prog"}}, ""},
		{chain.Function{Runtime: chain.RuntimeRunc, Rootfs: root, Env: own, Command: []string{"alias"}}, ""},
		{chain.Function{Runtime: chain.RuntimeRunc, Rootfs: root, Env: own, Command: []string{"absolute"}}, ""},
		{chain.Function{Runtime: chain.RuntimeRunc, Rootfs: root, Env: own, Command: []string{"outside"}}, "no such program"},
		{chain.Function{Runtime: chain.RuntimeRunc, Rootfs: root, Env: own, Command: []string{"loop"}}, "no such program"},
		{chain.Function{Runtime: chain.RuntimeRunc, Rootfs: root, Env: own, Command: []string{"data"}}, "no such program"},
		{chain.Function{Runtime: chain.RuntimeRunc, Rootfs: root, Command: []string{"opt/bin/prog"}}, ""},
		{chain.Function{Runtime: chain.RuntimeRunc, Rootfs: root, Command: []string{"/hostbin/sh"}}, "no such program"},
		{chain.Function{Runtime: chain.RuntimeRunc, Rootfs: root, Command: []string{"/climb/sh"}}, "no such program"},
		{chain.Function{Runtime: chain.RuntimeRunc, Rootfs: root, Env: map[string]string{"PATH": "/hostbin"}, Command: []string{"sh"}}, "no such program"},
		{chain.Function{Runtime: chain.RuntimeRunc, Rootfs: root, Command: []string{"/inner/prog"}}, ""},
		{chain.Function{Runtime: chain.RuntimeRunc, Rootfs: root, Command: []string{"/up/bin/prog"}}, ""},
		{chain.Function{Runtime: chain.RuntimeVM, Command: []string{"slep"}}, "no such program"},
		{chain.Function{Runtime: chain.RuntimeExternal}, ""},
		{chain.Function{Runtime: chain.RuntimeRunc}, ""},
	} {
		c.function.Name = "f"
		violations, notes := CheckCommands(&chain.Chain{Functions: []chain.Function{c.function}})
		switch {
		case len(notes) > 0:
			t.Errorf("%q: notes %q", c.function.Command, notes)
		case c.want == "" && len(violations) > 0, c.want != "" && (len(violations) != 1 || !strings.Contains(violations[0].Reason, c.want) || !violations[0].Hard):
			t.Errorf("%q: %+v, want one with %q", c.function.Command, violations, c.want)
		}
	}
}

func TestImagesAreNotLookedInto(t *testing.T) {
	c := chain.Chain{Functions: []chain.Function{{Name: "f", Runtime: chain.RuntimeDocker, Image: "i", Command: []string{"slep"}}}}
	if violations, notes := CheckCommands(&c); len(violations) > 0 || len(notes) != 1 || !strings.Contains(notes[0], "cannot check before the start") {
		t.Errorf("%v, %q", violations, notes)
	}
}

// TestOwnCommands: a container sees Drayage's programs at a place that the host does not have.
func TestOwnCommands(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dray-vnf"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	for _, c := range []struct {
		function chain.Function
		found    bool
	}{
		{chain.Function{Runtime: chain.RuntimeRunc}, true}, {chain.Function{Runtime: chain.RuntimeProcess}, true},
		{chain.Function{Runtime: chain.RuntimeRunc, Rootfs: rootfs(t)}, false},
		{chain.Function{Runtime: chain.RuntimeRunc, Env: map[string]string{"PATH": "/nowhere"}}, false},
	} {
		c.function.Command = []string{"dray-vnf"}
		violations, _ := CheckCommands(&chain.Chain{Functions: []chain.Function{c.function}})
		if (len(violations) == 0) != c.found {
			t.Errorf("%+v: %+v", c.function, violations)
		}
	}
}
