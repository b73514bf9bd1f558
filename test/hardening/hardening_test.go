// SPDX-License-Identifier: Apache-2.0

package hardening

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/test/testenv"
)

const out = "../../out/"

// file is the name in bin/, the kind, and the folders of the objects that `make build`
// linked it from.
type file struct {
	name    string
	kind    Kind
	objects []string
}

// shipped is all of bin/ that make install and the packages install.
var shipped = []file{
	{"dray", GoProgram, nil},
	{"dray-guest", GoProgram, nil},
	{"draygen", StaticProgram, []string{"gen-plain/libdray.a.p", "gen-plain/libgen.a.p", "gen-plain/draygen.p"}},
	{"dray-limit", StaticProgram, []string{"port-plain/bench/dray-limit.p"}},
	{"draygen-dpdk", Program, []string{"gen-plain/libdray.a.p", "gen-plain/libgen.a.p", "gen-plain/draygen-dpdk.p"}},
	{"dray-vnf", Program, []string{"vnf-plain/libvnf.a.p", "vnf-plain/dray-vnf.p"}},
	{"librte_net_dray.so", Library, []string{"pmd-plain/libdray.a.p", "pmd-plain/librte_net_dray.so.p"}},
}

func TestShippedFiles(t *testing.T) {
	for _, s := range shipped {
		t.Run(s.name, func(t *testing.T) {
			check(t, testenv.Built(t, s.name), s.kind, s.objects...)
		})
	}
	t.Run("libdray.so", func(t *testing.T) {
		testenv.Built(t, "dray-limit") // the same build makes both
		version, err := os.ReadFile("../../VERSION")
		testenv.Must(t, err)
		library := "port-plain/libdray.so." + strings.TrimSpace(string(version))
		check(t, out+library, Library, library+".p")
	})
}

// TestNothingElseIsShipped keeps the list complete: make install takes all of bin/.
func TestNothingElseIsShipped(t *testing.T) {
	files, err := os.ReadDir(filepath.Dir(testenv.Built(t, "dray")))
	testenv.Must(t, err)
	for _, f := range files {
		if target, err := os.Readlink(filepath.Join("../../bin", f.Name())); err == nil && target == "dray" {
			continue // kubectl-dray is dray
		}
		if !slices.ContainsFunc(shipped, func(s file) bool { return s.name == f.Name() }) {
			t.Errorf("bin/%s is installed, but nothing checks it", f.Name())
		}
	}
}

func check(t *testing.T, path string, kind Kind, folders ...string) {
	t.Helper()
	failed, err := File(path, kind)
	testenv.Must(t, err)
	if kind != GoProgram {
		var objects []string
		for _, folder := range folders {
			objects = append(objects, objectsIn(t, folder)...)
		}
		missing, err := Objects(objects)
		testenv.Must(t, err)
		failed = append(failed, missing...)
	}
	for _, f := range failed {
		t.Errorf("%s fails: %s", path, f)
	}
}

// objectsIn returns the objects that a build makes in one of its folders. Objects of
// sources that are gone may lie there too.
func objectsIn(t *testing.T, folder string) (objects []string) {
	t.Helper()
	build, folder, _ := strings.Cut(folder, "/")
	text, err := os.ReadFile(out + build + "/compile_commands.json")
	testenv.Must(t, err)
	var compiled []struct{ Output string }
	testenv.Must(t, json.Unmarshal(text, &compiled))
	for _, c := range compiled {
		if filepath.Dir(c.Output) == folder {
			objects = append(objects, out+build+"/"+c.Output)
		}
	}
	if len(objects) == 0 {
		t.Fatalf("no objects in %s of %s: run make build", folder, out+build)
	}
	return objects
}

var sources = map[string]string{
	// A buffer to guard, and a call to fortify.
	"x.c": `#include <stdio.h>
#include <string.h>
int main(int n, char **v) { char b[16]; strncpy(b, v[n - 1], n); return puts(b); }
`,
	// An address among the code, and a section for data and code.
	"address.s": ".text\n.quad puts\n.section .note.GNU-stack,\"\"\n",
	"both.s":    ".section both,\"awx\"\n.quad 1\n.section .note.GNU-stack,\"\"\n",
}

// sourceDir returns a folder with the sources, which gcc can compile here.
func sourceDir(t *testing.T) string {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("the faults are written for x86-64")
	}
	testenv.Program(t, "gcc")
	dir := t.TempDir()
	for name, text := range sources {
		testenv.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

func TestChecksCatch(t *testing.T) {
	dir := sourceDir(t)
	for _, fault := range []struct {
		flags string
		kind  Kind
		fails string
	}{
		{"", Program, ""},
		{"-static-pie", StaticProgram, ""},
		{"-shared", Library, ""},
		{"-no-pie", Program, "position-independent; marked as a position-independent program"},
		{"-shared", Program, "marked as a position-independent program"},
		{"-Wl,-z,norelro", Program, "relocations become read-only"},
		{"-Wl,-z,lazy", Program, "all symbols bound at the start"},
		{"-z execstack", Program, "stack not executable"},
		{"both.s", Program, "no memory both writable and executable"},
		{"-Wl,-z,notext address.s", Program, "no relocations in code"},
		{"-Wl,-rpath,/opt", Program, "no library path of its own"},
		{"", StaticProgram, "needs no interpreter"},
		{"-no-pie", GoProgram, "needs no interpreter"},
	} {
		gcc(t, dir, "-fPIC -pie -Wl,-z,relro,-z,now x.c -o linked "+fault.flags)
		failed, err := File(filepath.Join(dir, "linked"), fault.kind)
		testenv.Must(t, err)
		if got := strings.Join(failed, "; "); got != fault.fails {
			t.Errorf("linked with %q: fails %q, want %q", fault.flags, got, fault.fails)
		}
	}
}

func TestObjectChecksCatch(t *testing.T) {
	dir := sourceDir(t)
	object := filepath.Join(dir, "x.o")
	for flags, fails := range map[string]string{
		"":                       "",
		"-fno-stack-protector":   "stack protector",
		"-U_FORTIFY_SOURCE":      "fortified functions",
		"-fcf-protection=none":   object + ": control-flow enforcement",
		"-fcf-protection=branch": object + ": control-flow enforcement",
		"-fcf-protection=return": object + ": control-flow enforcement",
	} {
		gcc(t, dir, "-O2 -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fcf-protection=full -c x.c "+flags)
		failed, err := Objects([]string{object})
		testenv.Must(t, err)
		if got := strings.Join(failed, "; "); got != fails {
			t.Errorf("compiled with %q: fails %q, want %q", flags, got, fails)
		}
	}
	if _, err := Objects(nil); err == nil {
		t.Error("no objects pass")
	}
}

func gcc(t *testing.T, dir, arguments string) {
	t.Helper()
	compile := exec.Command("gcc", strings.Fields(arguments)...)
	compile.Dir = dir
	if text, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("gcc %s: %v\n%s", arguments, err, text)
	}
}
