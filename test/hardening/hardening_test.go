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
	{"dray-limit", StaticProgram, []string{"port-plain/dray-limit.p"}},
	{"draygen-dpdk", Program, []string{"gen-plain/libdray.a.p", "gen-plain/libgen.a.p", "gen-plain/draygen-dpdk.p"}},
	{"dray-vnf", Program, []string{"vnf-plain/libvnf.a.p", "vnf-plain/libprogram.a.p", "vnf-plain/dray-vnf.p"}},
	{"libdray_iq.so", Library, []string{"iq-plain/libdray.a.p", "iq-plain/libdray_iq.so.p"}},
	{"librte_net_dray.so", Library, []string{"pmd-plain/libdray.a.p", "pmd-plain/libnet_dray.a.p"}},
	{"libdray_sctp.so", Library, []string{"sctp-plain/libdray_sctp.so.p"}},
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

// TestARMFiles checks what dataplane/test.sh cross-builds. The functions of dray-vnf are
// built without DPDK.
func TestARMFiles(t *testing.T) {
	version, err := os.ReadFile("../../VERSION")
	testenv.Must(t, err)
	library := "port-aarch64/libdray.so." + strings.TrimSpace(string(version))
	for _, b := range []file{
		{library, Library, []string{library + ".p"}},
		{"gen-aarch64/draygen", StaticProgram, []string{"gen-aarch64/libdray.a.p", "gen-aarch64/libgen.a.p", "gen-aarch64/draygen.p"}},
		{"iq-aarch64/libdray_iq.so", Library, []string{"iq-aarch64/libdray.a.p", "iq-aarch64/libdray_iq.so.p"}},
		{"vnf-aarch64/libvnf.a", 0, []string{"vnf-aarch64/libvnf.a.p"}},
	} {
		t.Run(b.name, func(t *testing.T) {
			if _, err := os.Stat(out + b.name); err != nil {
				t.Skip("not built: dataplane/test.sh builds it")
			}
			if b.kind != 0 {
				check(t, out+b.name, b.kind, b.objects...)
				return
			}
			failed, err := Objects(objectsIn(t, b.objects[0]))
			testenv.Must(t, err)
			for _, f := range failed {
				t.Errorf("%s fails: %s", b.name, f)
			}
		})
	}
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
		compile(t, "gcc", dir, "-fPIC -pie -Wl,-z,relro,-z,now x.c -o linked "+fault.flags)
		failed, err := File(filepath.Join(dir, "linked"), fault.kind)
		testenv.Must(t, err)
		if got := strings.Join(failed, "; "); got != fault.fails {
			t.Errorf("linked with %q: fails %q, want %q", fault.flags, got, fault.fails)
		}
	}
}

func TestObjectChecksCatch(t *testing.T) {
	dir := sourceDir(t)
	checkObjects(t, "gcc", dir, "-fcf-protection=full", map[string]string{
		"":                       "",
		"-fno-stack-protector":   "stack protector",
		"-U_FORTIFY_SOURCE":      "fortified functions",
		"-fcf-protection=none":   "control-flow enforcement",
		"-fcf-protection=branch": "control-flow enforcement",
		"-fcf-protection=return": "control-flow enforcement",
	})
	if _, err := Objects(nil); err == nil {
		t.Error("no objects pass")
	}
}

func TestARMObjectChecksCatch(t *testing.T) {
	const compiler = "aarch64-linux-gnu-gcc"
	dir := sourceDir(t)
	testenv.Program(t, compiler)
	checkObjects(t, compiler, dir, "-mbranch-protection=standard", map[string]string{
		"":                            "",
		"-fno-stack-protector":        "stack protector",
		"-mbranch-protection=none":    "control-flow enforcement",
		"-mbranch-protection=bti":     "control-flow enforcement",
		"-mbranch-protection=pac-ret": "control-flow enforcement",
	})
}

// checkObjects compiles a source with all protections, then with each of the flags, and
// compares what fails.
func checkObjects(t *testing.T, compiler, dir, protection string, fails map[string]string) {
	t.Helper()
	object := filepath.Join(dir, "x.o")
	for flags, want := range fails {
		compile(t, compiler, dir, "-O2 -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 "+protection+" -c x.c "+flags)
		failed, err := Objects([]string{object})
		testenv.Must(t, err)
		if got := strings.ReplaceAll(strings.Join(failed, "; "), object+": ", ""); got != want {
			t.Errorf("%s with %q: fails %q, want %q", compiler, flags, got, want)
		}
	}
}

func compile(t *testing.T, compiler, dir, arguments string) {
	t.Helper()
	cmd := exec.Command(compiler, strings.Fields(arguments)...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", compiler, arguments, err, text)
	}
}
