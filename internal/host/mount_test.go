// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/test/testenv"
)

func write(t testing.TB, path string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte("precious"), 0o644))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func TestBindReadOnly(t *testing.T) {
	testenv.Root(t)
	dir := testDir(t)
	source, target := dir+"/source", dir+"/target"
	write(t, source+"/file")
	must(t, os.Mkdir(target, 0o755))
	must(t, BindReadOnly(source, target))
	if err := os.WriteFile(target+"/file", nil, 0); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing through the bind: %v", err)
	}
	if err := os.WriteFile(source+"/other", nil, 0o600); err != nil {
		t.Errorf("the source itself became read-only: %v", err)
	}
	must(t, unmountAll(target))
	must(t, unmountAll(target)) // again
	must(t, unmountAll(dir+"/no-such"))
	if exists(target + "/file") {
		t.Error("still bound")
	}
}

// TestBindKeepsNosuid: a bind keeps its file system's restrictions.
func TestBindKeepsNosuid(t *testing.T) {
	testenv.Root(t)
	dir := testDir(t)
	must(t, os.Mkdir(dir+"/tmpfs", 0o755))
	must(t, os.Mkdir(dir+"/bind", 0o755))
	must(t, unix.Mount("tmpfs", dir+"/tmpfs", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64k"))
	must(t, BindReadOnly(dir+"/tmpfs", dir+"/bind"))
	var st unix.Statfs_t
	must(t, unix.Statfs(dir+"/bind", &st))
	if want := int64(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_RDONLY); st.Flags&want != want {
		t.Errorf("flags %#x", st.Flags)
	}
}

func TestRemoveDir(t *testing.T) {
	testenv.Root(t)
	dir := testDir(t)
	outside := dir + "/outside"
	write(t, outside+"/sub/file")
	doomed := dir + "/doomed"
	write(t, doomed+"/a/b/file")
	must(t, os.Symlink(outside, doomed+"/link"))
	must(t, os.Mkdir(doomed+"/a/bind", 0o755))
	must(t, unix.Mount(outside, doomed+"/a/bind", "", unix.MS_BIND, "")) // writable: the worst case
	must(t, os.Mkdir(doomed+"/root", 0o755))
	must(t, BindReadOnly("/", doomed+"/root"))
	must(t, unix.Mount(outside, doomed+"/a/bind", "", unix.MS_BIND, "")) // one on top of the other

	must(t, removeDir(doomed))
	if exists(doomed) {
		t.Error("still there")
	}
	if !exists(outside + "/sub/file") {
		t.Error("removed files of another directory through a bind mount or a link")
	}
	must(t, removeDir(doomed)) // again
	must(t, removeDir(doomed+"/never/was"))
}

// TestRemoveDirBehindSymlink: mounts are listed by real path, so a tree named
// through a link must not seem free of mounts.
func TestRemoveDirBehindSymlink(t *testing.T) {
	testenv.Root(t)
	dir := testDir(t)
	write(t, dir+"/outside/file")
	must(t, os.MkdirAll(dir+"/real/tree/bind", 0o755))
	must(t, os.Symlink(dir+"/real", dir+"/alias"))
	must(t, unix.Mount(dir+"/outside", dir+"/real/tree/bind", "", unix.MS_BIND, ""))
	must(t, removeDir(dir+"/alias/tree"))
	if exists(dir+"/real/tree") || !exists(dir+"/outside/file") {
		t.Errorf("tree there: %v; other directory's file there: %v", exists(dir+"/real/tree"), exists(dir+"/outside/file"))
	}
}

// TestRemoveTreeStopsAtMounts: even with a wrong mount list, nothing is deleted
// through a mount.
func TestRemoveTreeStopsAtMounts(t *testing.T) {
	testenv.Root(t)
	dir := testDir(t)
	write(t, dir+"/outside/file")
	must(t, os.MkdirAll(dir+"/tree/bind", 0o755))
	must(t, unix.Mount(dir+"/outside", dir+"/tree/bind", "", unix.MS_BIND, ""))
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	err = removeTree(fd, "tree", dir+"/tree")
	if err == nil || !strings.Contains(err.Error(), dir+"/tree/bind: still a mount point") {
		t.Errorf("error %v", err)
	}
	if !exists(dir + "/outside/file") {
		t.Error("deleted through the bind mount")
	}
}

// TestRemovalDoesNotPropagate: a bind still shared with its source, left by a
// `dray` that died half-way, takes nothing of the source with it.
func TestRemovalDoesNotPropagate(t *testing.T) {
	testenv.Root(t)
	dir := testDir(t)
	source, doomed := dir+"/source", dir+"/doomed"
	must(t, os.MkdirAll(source, 0o755))
	must(t, os.MkdirAll(doomed+"/root", 0o755))
	must(t, unix.Mount("tmpfs", source, "tmpfs", 0, "size=64k"))
	must(t, unix.Mount("", source, "", unix.MS_SHARED, ""))
	must(t, os.Mkdir(source+"/sub", 0o755))
	must(t, unix.Mount(source, doomed+"/root", "", unix.MS_BIND, ""))
	must(t, unix.Mount("tmpfs", source+"/sub", "tmpfs", 0, "size=64k")) // appears in the bind too
	points, err := MountsAt(doomed)
	must(t, err)
	if len(points) != 2 {
		t.Fatalf("mounts %v: the bind is not shared", points)
	}
	must(t, removeDir(doomed))
	points, err = MountsAt(source)
	must(t, err)
	if len(points) != 2 {
		t.Errorf("of the source's mounts %v are left", points)
	}
}

func TestRemoveDirRefuses(t *testing.T) {
	for _, path := range []string{"", "/", "relative", "/run/../etc", "/run/x/"} {
		if err := removeDir(path); err == nil {
			t.Errorf("%q was accepted", path)
		}
	}
}
