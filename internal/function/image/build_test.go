// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// fakeMmdebstrap makes a small tree. It fails, or waits to be killed, if a file
// next to it exists. Its last arguments are suite, directory and one source.
const fakeMmdebstrap = `#!/bin/sh
here=$(dirname "$0")
echo "$*" >>"$here/calls"
while [ $# -gt 3 ]; do shift; done
mkdir -p "$2/etc/apt" "$2/usr/local/bin" "$2/dev" "$2/var/log"
echo "$1" >"$2/etc/release"
ln "$2/etc/release" "$2/etc/again"
echo secret.example >"$2/etc/apt/sources.list"
date >"$2/var/log/a.log"
[ ! -e "$here/tools" ] || cp -a "$here/tools/." "$2"
[ ! -e "$here/fail" ] || { echo "E: no such package" >&2; exit 3; }
[ ! -e "$here/wait" ] || { touch "$here/waits"; sleep 1000; }
`

const fakeApt = "#!/bin/sh\necho \"$(. /etc/os-release; echo $VERSION_CODENAME) main http://mirror.example/debian\"\n"

const fakeAptConfig = "#!/bin/sh\necho 'Acquire::http::Proxy \"http://proxy.example\"'\necho 'Acquire::https::Proxy \"\"'\n"

// workshop has fake mmdebstrap and apt, and an empty image directory.
func workshop(t *testing.T) (dir string, r *Recipe) {
	t.Helper()
	testenv.Root(t)
	if codename("/etc/os-release") == "" {
		t.Skip("images are of the host's Debian")
	}
	dir = t.TempDir()
	for name, text := range map[string]string{"mmdebstrap": fakeMmdebstrap, "apt-get": fakeApt, "apt-config": fakeAptConfig, "draygen": "#!/bin/sh\n"} {
		testenv.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv(folderVariable, filepath.Join(dir, "images"))
	r, err := Parse("x", []byte(good), nil)
	testenv.Must(t, err)
	return dir, r
}

func say(t *testing.T) func(string) { return func(text string) { t.Log(text) } }

func calls(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "calls"))
	testenv.Must(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// onlyThese fails if the image directory holds anything else.
func onlyThese(t *testing.T, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(Folder())
	testenv.Must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the image directory holds %q, want %q", got, want)
	}
}

func TestBuild(t *testing.T) {
	dir, r := workshop(t)
	i, err := Build(context.Background(), r, false, say(t))
	testenv.Must(t, err)
	release := codename("/etc/os-release") + "\n"
	got, err := os.ReadFile(filepath.Join(i.Rootfs, "etc/again"))
	if err != nil || string(got) != release {
		t.Errorf("%q, %v", got, err)
	}
	if want := int64(len(release) + len("#!/bin/sh\n")); i.Size != want || i.Took <= 0 {
		t.Errorf("%+v: want %d bytes", i, want)
	}
	for _, gone := range []string{"etc/apt/sources.list", "var/log/a.log"} {
		if _, err := os.Stat(filepath.Join(i.Rootfs, gone)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", gone, err)
		}
	}
	if info, err := os.Stat(filepath.Join(i.Rootfs, "usr/local/bin/draygen")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	argv := calls(t, dir)[0]
	for _, want := range []string{"--variant=minbase", "--include=tool --include=tool-2", `--aptopt=Acquire::http::Proxy "http://proxy.example"`, " main"} {
		if !strings.Contains(argv, want) {
			t.Errorf("%s lacks %s", argv, want)
		}
	}
	if strings.Contains(argv, "https::Proxy") {
		t.Errorf("an option without a value: %s", argv)
	}
	onlyThese(t, "x", "x.lock")
}

func TestBuildOnce(t *testing.T) {
	dir, r := workshop(t)
	build := func(r *Recipe, afresh bool, builds int) { // so far
		t.Helper()
		i, err := Build(context.Background(), r, afresh, say(t))
		testenv.Must(t, err)
		if ready := Ready("x"); ready == nil || ready.Key != i.Key || ready.Rootfs != i.Rootfs {
			t.Errorf("%+v; ready is %+v", i, ready)
		}
		if n := len(calls(t, dir)); n != builds {
			t.Errorf("%d builds, want %d", n, builds)
		}
	}
	if Ready("x") != nil {
		t.Error("the image exists before it is built")
	}
	build(r, false, 1)
	build(r, false, 1)
	build(r, true, 2)
	other, err := Parse("x", []byte(good+"package: more more\n"), nil)
	testenv.Must(t, err)
	build(other, false, 3)
	testenv.Must(t, os.WriteFile(filepath.Join(dir, "draygen"), []byte("#!/bin/sh\n# another\n"), 0o755))
	build(other, false, 4)
	onlyThese(t, "x", "x.lock")
}

func TestFailedBuild(t *testing.T) {
	dir, r := workshop(t)
	before, err := Build(context.Background(), r, false, say(t))
	testenv.Must(t, err)
	testenv.Must(t, os.WriteFile(filepath.Join(dir, "fail"), nil, 0o644))
	if _, err := Build(context.Background(), r, true, say(t)); err == nil || !strings.Contains(err.Error(), "E: no such package") {
		t.Errorf("%v", err)
	}
	if after := Ready("x"); after == nil || !after.Built.Equal(before.Built) {
		t.Errorf("the old image is gone: %+v", after)
	}
	onlyThese(t, "x", "x.lock")
}

// A stopped build ends all of its processes, and leaves nothing.
func TestStoppedBuild(t *testing.T) {
	dir, r := workshop(t)
	testenv.Must(t, os.WriteFile(filepath.Join(dir, "wait"), nil, 0o644))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(dir, "waits")); err == nil {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if _, err := Build(ctx, r, false, say(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	onlyThese(t, "x.lock")
}

// The next build removes a killed build's remains, but not other images'.
func TestSweep(t *testing.T) {
	_, r := workshop(t)
	for _, name := range []string{making + "x.1/rootfs", replaced + making + "x.2/rootfs", making + "x-y.3/rootfs"} {
		testenv.Must(t, os.MkdirAll(filepath.Join(Folder(), name), 0o755))
	}
	if _, err := Build(context.Background(), r, false, say(t)); err != nil {
		t.Fatal(err)
	}
	onlyThese(t, making+"x-y.3", "x", "x.lock")
}

// The same files give the same archive, whenever they were made.
func TestArchive(t *testing.T) {
	dir, r := workshop(t)
	var sums []string
	for range 2 {
		i, err := Build(context.Background(), r, true, say(t))
		testenv.Must(t, err)
		file := filepath.Join(dir, "x.tar")
		sum, err := i.ArchiveFile(context.Background(), file)
		testenv.Must(t, err)
		sums = append(sums, sum)
		text, err := os.ReadFile(file)
		testenv.Must(t, err)
		found := false
		for archive := tar.NewReader(bytes.NewReader(text)); ; {
			h, err := archive.Next()
			if err == io.EOF {
				break
			}
			testenv.Must(t, err)
			found = found || h.Name == "./etc/release"
			if h.ModTime.Unix() > 1735689600 {
				t.Errorf("%s is of %v", h.Name, h.ModTime)
			}
		}
		if !found {
			t.Error("the archive lacks the file")
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("%q", sums)
	}
	t.Setenv(epochVariable, "yesterday")
	if _, err := Build(context.Background(), r, true, say(t)); err == nil || !strings.Contains(err.Error(), epochVariable) {
		t.Errorf("%v", err)
	}
}
