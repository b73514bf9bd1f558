// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// someSources is a folder of sources, with a history.
func someSources(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x-1.0")
	for _, file := range []string{"a/b", "c", ".git/config"} {
		testenv.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
		testenv.Must(t, os.WriteFile(filepath.Join(dir, file), []byte("of "+file+"\n"), 0o644))
	}
	testenv.Must(t, os.Symlink("c", filepath.Join(dir, "link")))
	return dir
}

func sourceOf(t *testing.T) *Source {
	t.Helper()
	s, err := parseSource("DRAY_X https://x.example/x " + pin + " a/b")
	testenv.Must(t, err)
	return s
}

func run(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", argv, err, out)
	}
	return strings.TrimSpace(string(out))
}

// got gets the sources, and lists them.
func got(t *testing.T, s *Source) (id, list string, err error) {
	t.Helper()
	if id, err = s.named(); err != nil {
		return "", "", err
	}
	dir := filepath.Join(t.TempDir(), "got")
	if id, err = s.get(context.Background(), id, dir, say(t)); err != nil {
		return "", "", err
	}
	names := strings.Split(run(t, "find", dir, "-mindepth", "1", "-printf", "%P\n"), "\n")
	slices.Sort(names)
	return id, strings.Join(names, " "), nil
}

func TestSourcesByVariable(t *testing.T) {
	testenv.Program(t, "xz")
	dir, s := someSources(t), sourceOf(t)
	parent, name := filepath.Split(dir)
	files := filepath.Join(t.TempDir(), "x.tar")
	run(t, "tar", "--create", "--exclude=.git", "--file", files, "--directory", parent, name)
	run(t, "tar", "--create", "--exclude=.git", "--gzip", "--file", files+".gz", "--directory", parent, name)
	run(t, "tar", "--create", "--exclude=.git", "--xz", "--file", files+".xz", "--directory", dir, ".")
	for path, kind := range map[string]string{dir: "folder ", files: "file ", files + ".gz": "file ", files + ".xz": "file "} {
		t.Setenv(s.Variable, path)
		id, list, err := got(t, s)
		if err != nil || !strings.HasPrefix(id, kind) || list != "a a/b c link" {
			t.Errorf("%s: %q has %q, %v", path, id, list, err)
		}
	}
}

func TestSourcesThatAreNone(t *testing.T) {
	s, empty, text := sourceOf(t), t.TempDir(), filepath.Join(t.TempDir(), "text")
	testenv.Must(t, os.WriteFile(text, []byte("no tar\n"), 0o644))
	other := filepath.Join(t.TempDir(), "other.tar")
	run(t, "tar", "--create", "--file", other, "--directory", filepath.Dir(text), "text")
	for path, want := range map[string]string{
		"/nowhere/x": "DRAY_X: stat /nowhere/x: no such file",
		"/dev/null":  "DRAY_X=/dev/null is neither a folder nor a file",
		empty:        "DRAY_X=" + empty + " has no file a/b",
		text:         "DRAY_X=" + text + " is not a tar file, plain, gz or xz",
		other:        "DRAY_X=" + other + " has no file a/b",
	} {
		t.Setenv(s.Variable, path)
		_, _, err := got(t, s)
		if !errors.Is(err, host.ErrUnsupported) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "set DRAY_X to a folder or tar file with the sources of commit "+pin) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Without the variable, exactly the pinned commit is fetched.
func TestFetchedSources(t *testing.T) {
	testenv.Program(t, "git")
	dir, s := someSources(t), sourceOf(t)
	testenv.Must(t, os.RemoveAll(filepath.Join(dir, ".git")))
	t.Setenv(s.Variable, "")
	git := func(argv ...string) string {
		return run(t, append([]string{"git", "-C", dir, "-c", "user.name=x", "-c", "user.email=x@x.example"}, argv...)...)
	}
	git("init", "--quiet")
	git("add", ".")
	git("commit", "--quiet", "--message=one")
	s.Repository, s.Commit = "file://"+dir, git("rev-parse", "HEAD")
	testenv.Must(t, os.WriteFile(filepath.Join(dir, "later"), nil, 0o644))
	git("add", ".")
	git("commit", "--quiet", "--message=two")
	id, list, err := got(t, s)
	if err != nil || id != "commit "+s.Commit || list != "a a/b c link" {
		t.Errorf("%q has %q, %v", id, list, err)
	}
	s.Commit = pin
	if _, _, err := got(t, s); !errors.Is(err, host.ErrUnsupported) || !strings.Contains(err.Error(), "DRAY_X is not set, and git: ") {
		t.Errorf("a commit that is none: %v", err)
	}
	s.Repository = "file:///nowhere"
	if _, _, err := got(t, s); !errors.Is(err, host.ErrUnsupported) || !strings.Contains(err.Error(), "DRAY_X is not set, and git: ") {
		t.Errorf("no repository: %v", err)
	}
}

// What a build depends on changes the identity of a folder, and nothing else does.
func TestIdentityOfSources(t *testing.T) {
	dir := someSources(t)
	sum := func() string {
		t.Helper()
		text, err := treeSum(dir)
		testenv.Must(t, err)
		return text
	}
	before := sum()
	testenv.Must(t, os.WriteFile(filepath.Join(dir, ".git/config"), []byte("another"), 0o644))
	testenv.Must(t, os.Chtimes(filepath.Join(dir, "c"), time.Unix(1, 0), time.Unix(1, 0)))
	if sum() != before {
		t.Error("the history, or a time, changes the identity")
	}
	for what, change := range map[string]func() error{
		"content": func() error { return os.WriteFile(filepath.Join(dir, "c"), []byte("C"), 0o644) },
		"mode":    func() error { return os.Chmod(filepath.Join(dir, "c"), 0o755) },
		"name":    func() error { return os.Rename(filepath.Join(dir, "c"), filepath.Join(dir, "d")) },
		"link": func() error {
			return errors.Join(os.Remove(filepath.Join(dir, "link")), os.Symlink("d", filepath.Join(dir, "link")))
		},
	} {
		last := sum()
		testenv.Must(t, change())
		if sum() == last {
			t.Errorf("%s does not change the identity", what)
		}
	}
}
