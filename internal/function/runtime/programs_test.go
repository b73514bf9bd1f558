// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// TestPrograms: a function on the host's root finds Drayage's programs, wherever they are.
func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "dray-vnf")
	testenv.Must(t, os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755))
	t.Setenv("PATH", dir)
	for _, c := range []struct {
		function chain.Function
		want     string // of the search path, after the usual
		shown    string // where a container sees the program
	}{
		{chain.Function{Runtime: chain.RuntimeProcess}, ":" + dir, ""},
		{chain.Function{Runtime: chain.RuntimeVM}, ":" + dir, ""},
		{chain.Function{Runtime: chain.RuntimeRunc}, ":/run/dray/bin", "/run/dray/bin/dray-vnf"},
		{chain.Function{Runtime: chain.RuntimeRunc, Rootfs: "/srv/image"}, "", ""},
		{chain.Function{Runtime: chain.RuntimeDocker, Image: "vnf"}, "", ""},
		{chain.Function{Runtime: chain.RuntimeExternal}, "", ""},
	} {
		s := Spec{Function: c.function}
		if env := s.Environ(); !slices.Contains(env, "PATH="+defaultPath+c.want) {
			t.Errorf("%+v: %q", c.function, env)
		}
		binds, err := s.Binds()
		testenv.Must(t, err)
		if shown := slices.Contains(binds, Bind{Source: file, Target: c.shown}); shown != (c.shown != "") || len(binds) > 1 {
			t.Errorf("%+v: binds %+v", c.function, binds)
		}
	}
	// What is installed where functions look anyway is not shown a second time.
	t.Setenv("PATH", "/nowhere")
	if files := (Spec{Function: chain.Function{Runtime: chain.RuntimeRunc}}).Programs(); len(files) != 0 {
		t.Errorf("%q", files)
	}
}
