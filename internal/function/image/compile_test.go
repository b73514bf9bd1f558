// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// fakeBuild makes a program, a library and a link to it from the sources. It fails, or
// waits to be killed, if the sources say so.
const fakeBuild = `set -eu
[ "$(id -u):$(id -g) $(pwd)" = "1990000000:1990000000 /build" ]
echo "a build" >>cache/builds
read -r what <"$1/c"
case $what in
fail) echo "error: c:1"; exit 3 ;;
wait) echo >"$1/waits"; sleep 4321 ;;
esac
echo "[1/2] one"
mkdir -p "$2/bin" "$2/lib/x"
cp "$1/a/b" "$2/bin/tool"
chmod 4775 "$2/bin/tool"
cp recipe/radio/x.c "$2/lib/x/libx.so.1"
ln -s libx.so.1 "$2/lib/x/libx.so"
echo "[2/2] two"
`

// buildWorkshop is workshop, with a recipe that is built from the sources in dir.
func buildWorkshop(t *testing.T) (dir string, r *Recipe, from string) {
	t.Helper()
	dir, _ = workshop(t)
	tools := filepath.Join(dir, "tools")
	library := regexp.MustCompile(`/\S+\.so[.0-9]*`)
	for _, name := range []string{"sh", "cp", "mkdir", "chmod", "ln", "id", "sleep", "setpriv"} {
		path, err := exec.LookPath(name)
		testenv.Must(t, err)
		run(t, "cp", "--parents", "--dereference", "-t", mustFolder(t, tools), path)
		for _, lib := range library.FindAllString(run(t, "ldd", path), -1) {
			run(t, "cp", "--parents", "--dereference", "-t", tools, lib)
		}
	}
	mustFolder(t, filepath.Join(tools, "proc"))
	mustFolder(t, filepath.Join(tools, "usr/local/lib"))
	from = someSources(t)
	t.Setenv("DRAY_X", from)
	r, err := Parse("x", []byte(strings.Replace(goodSource, "program: libdray_x.so what\n", "", 1)), map[string][]byte{
		"build.sh": []byte(fakeBuild), "start": []byte("#!/bin/sh\n"), "radio/x.c": []byte("int x;\n"),
	})
	testenv.Must(t, err)
	return dir, r, from
}

func mustFolder(t *testing.T, path string) string {
	t.Helper()
	testenv.Must(t, os.MkdirAll(path, 0o755))
	return path
}

func contentOf(t *testing.T, i *Image, name, want string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(i.Rootfs, "usr/local", name)
	text, err := os.ReadFile(path)
	if err != nil || string(text) != want {
		t.Errorf("%s: %q, %v", name, text, err)
		return
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != mode || run(t, "stat", "-c", "%u:%g", path) != "0:0" {
		t.Errorf("%s: %v, %v", name, info.Mode(), err)
	}
}

func TestBuildFromSources(t *testing.T) {
	dir, r, _ := buildWorkshop(t)
	var said []string
	i, err := Build(context.Background(), r, false, func(text string) { said = append(said, text) })
	testenv.Must(t, err)
	contentOf(t, i, "bin/tool", "of a/b\n", 0o755)
	contentOf(t, i, "bin/start", "#!/bin/sh\n", 0o755)
	contentOf(t, i, "lib/x/libx.so", "int x;\n", 0o644)
	contentOf(t, i, "bin/draygen", "#!/bin/sh\n", 0o755)
	if _, err := os.Stat(filepath.Join(i.Rootfs, "etc/ld.so.cache")); err != nil {
		t.Error(err)
	}
	onlyThese(t, "x", "x.cache", "x.lock")
	if _, err := os.Stat(filepath.Join(i.Rootfs, "build")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the build's folder is in the image: %v", err)
	}
	argv := calls(t, dir)
	if len(argv) != 2 || !strings.Contains(argv[0], "--include=cc") || strings.Contains(argv[0], "path-exclude") || strings.Contains(argv[1], "--include=cc") {
		t.Errorf("%q", argv)
	}
	if text := strings.Join(said, "\n"); !strings.Contains(text, "\n  image x: step 1 of 2\n") || !strings.Contains(text, "building https://x.example/x in a root file system of its own, with 1 more packages") {
		t.Error(text)
	}
}

// Sources are built again only if they, or what their build depends on, changed.
func TestBuildFromSourcesOnce(t *testing.T) {
	dir, r, from := buildWorkshop(t)
	roots := 0
	build := func(what string, afresh bool, more int) { // root file systems that it makes
		t.Helper()
		i, err := Build(context.Background(), r, afresh, say(t))
		testenv.Must(t, err)
		if Current(r) == nil || i.Source == "" {
			t.Errorf("%s: %+v is not current", what, i)
		}
		if roots += more; len(calls(t, dir)) != roots {
			t.Errorf("%s: %d root file systems so far, want %d", what, len(calls(t, dir)), roots)
		}
		contentOf(t, i, "bin/tool", "of a/b\n", 0o755)
		onlyThese(t, "x", "x.cache", "x.lock")
	}
	build("at first", false, 2)
	build("again", false, 0)
	build("afresh", true, 2)
	testenv.Must(t, os.WriteFile(filepath.Join(dir, "draygen"), []byte("#!/bin/sh\n# another\n"), 0o755))
	if Current(r) != nil {
		t.Error("an image with an old program counts as current")
	}
	build("another program", false, 1)
	r.Files["start"] = []byte("#!/bin/sh\n# another\n")
	build("another script", false, 1)
	t.Setenv("DRAY_X", "")
	build("sources that are no longer named", false, 0)
	r.Files["start"] = []byte("#!/bin/sh\n")
	build("another script, without the sources", false, 1)
	t.Setenv("DRAY_X", from)
	r.Files["radio/x.c"] = []byte("int y;\n")
	build("another file of the recipe", false, 2)
	r.BuildPackages = append(r.BuildPackages, Part{"ld", "linker"})
	build("another build package", false, 2)
	testenv.Must(t, os.WriteFile(filepath.Join(from, "c"), []byte("changed\n"), 0o644))
	if Current(r) != nil {
		t.Error("an image of other sources counts as current")
	}
	build("other sources", false, 2)
	t.Setenv("DRAY_X", "/nowhere")
	if Current(r) != nil {
		t.Error("an image counts as current although the sources that are named do not exist")
	}
}

func TestFailedBuildFromSources(t *testing.T) {
	dir, r, from := buildWorkshop(t)
	testenv.Must(t, os.WriteFile(filepath.Join(from, "c"), []byte("fail\n"), 0o644))
	_, err := Build(context.Background(), r, false, say(t))
	log := filepath.Join(Folder(), "x.log")
	if err == nil || !strings.Contains(err.Error(), "image x: build.sh: exit status 3; its output is in "+log+", and ends with:\n  error: c:1") {
		t.Errorf("%v", err)
	}
	if text, err := os.ReadFile(log); err != nil || string(text) != "error: c:1\n" {
		t.Errorf("%q, %v", text, err)
	}
	onlyThese(t, "x.cache", "x.lock", "x.log")
	testenv.Must(t, os.WriteFile(filepath.Join(from, "c"), []byte("good\n"), 0o644))
	if _, err := Build(context.Background(), r, false, say(t)); err != nil {
		t.Error(err)
	}
	onlyThese(t, "x", "x.cache", "x.lock")
	if text, err := os.ReadFile(filepath.Join(Folder(), "x.cache/builds")); err != nil || string(text) != "a build\na build\n" {
		t.Errorf("the cache has %q, %v", text, err)
	}
	roots := len(calls(t, dir))
	t.Setenv("DRAY_X", "/nowhere")
	if _, err := Build(context.Background(), r, true, say(t)); err == nil || !strings.Contains(err.Error(), "DRAY_X") || len(calls(t, dir)) != roots {
		t.Errorf("%v, after %d root file systems", err, len(calls(t, dir)))
	}
}

// whenItWaits calls then once the build script says that it waits.
func whenItWaits(ctx context.Context, then func()) {
	for ctx.Err() == nil {
		if found, _ := filepath.Glob(filepath.Join(Folder(), making+"x.*/results.root/build/source/waits")); found != nil {
			then()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// scriptEnds fails if the waiting build script still runs after a while.
func scriptEnds(t *testing.T) {
	t.Helper()
	testenv.Program(t, "pgrep")
	for deadline := time.Now().Add(testenv.Patient(30 * time.Second)); ; time.Sleep(10 * time.Millisecond) {
		if exec.Command("pgrep", "--full", "^sleep 4321$").Run() != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the build script still runs")
		}
	}
}

// The build script ends when the build is stopped, and nothing is left.
func TestStoppedBuildFromSources(t *testing.T) {
	_, r, from := buildWorkshop(t)
	testenv.Must(t, os.WriteFile(filepath.Join(from, "c"), []byte("wait\n"), 0o644))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	go whenItWaits(ctx, cancel)
	if _, err := Build(ctx, r, false, say(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	onlyThese(t, "x.cache", "x.lock")
	scriptEnds(t)
}

// killedBuild makes the test's own program build, and wait to be killed.
const killedBuild = "DRAY_TEST_KILLED_BUILD"

// The build script ends when dray is killed, and the next build removes what is left.
func TestKilledBuildFromSources(t *testing.T) {
	dir, r, from := buildWorkshop(t)
	if os.Getenv(killedBuild) != "" {
		t.Setenv(folderVariable, os.Getenv(killedBuild))
		testenv.Must(t, os.WriteFile(filepath.Join(from, "c"), []byte("wait\n"), 0o644))
		_, err := Build(context.Background(), r, false, say(t))
		t.Fatalf("the build was not killed: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKilledBuildFromSources$")
	cmd.Env = append(os.Environ(), killedBuild+"="+Folder(), "TMPDIR="+dir)
	testenv.Must(t, cmd.Start())
	whenItWaits(ctx, func() { testenv.Must(t, cmd.Process.Kill()) })
	if err := cmd.Wait(); err == nil || ctx.Err() != nil {
		t.Fatalf("%v, %v", err, ctx.Err())
	}
	scriptEnds(t)
	if left, err := filepath.Glob(filepath.Join(dir, "images", making+"*")); err != nil || len(left) != 1 {
		t.Errorf("left are %q, %v", left, err)
	}
	if _, err := Build(context.Background(), r, false, say(t)); err != nil {
		t.Error(err)
	}
	onlyThese(t, "x", "x.cache", "x.lock")
}
