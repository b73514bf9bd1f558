// SPDX-License-Identifier: Apache-2.0

package dockertest

import (
	"archive/tar"
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/drayage/dray/internal/function/dockercli"
)

// Programs are always in the images of Import; perl comes with its base modules.
var Programs = []string{"sh", "cat", "echo", "env", "grep", "id", "ls", "nproc", "perl", "readlink", "setsid", "sleep", "sort", "wc"}

// Import makes a small image of host programs, of libraries given by path, and of
// the libraries that they need. Nothing is downloaded.
func Import(t testing.TB, client dockercli.Client, name string, programs ...string) {
	t.Helper()
	var archive bytes.Buffer
	b := &imageBuilder{t: t, tar: tar.NewWriter(&archive), seen: map[string]bool{}}
	for _, dir := range []string{"/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/var/tmp"} {
		b.dir(dir)
	}
	for _, program := range append(Programs, programs...) {
		b.program(program)
	}
	modules, err := exec.Command("perl", "-e", `print grep { /perl-base$/ } @INC`).Output()
	if err != nil || len(modules) == 0 {
		t.Fatalf("find perl's base modules: %v", err)
	}
	b.tree(string(modules))
	b.text("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
	b.text("/etc/shadow", "root:*:20000:0:99999:7:::\n")
	if err := b.tar.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := client.Command(context.Background(), "import", "-", name)
	cmd.Stdin = &archive
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("docker import: %v: %s", err, out)
	}
}

type imageBuilder struct {
	t    testing.TB
	tar  *tar.Writer
	seen map[string]bool
}

// add writes an entry once, after its parent directories and links; it reports
// whether the entry is new.
func (b *imageBuilder) add(h tar.Header, content []byte) bool {
	b.t.Helper()
	if b.seen[h.Name] {
		return false
	}
	b.seen[h.Name] = true
	h.Size = int64(len(content))
	if err := b.tar.WriteHeader(&h); err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.tar.Write(content); err != nil {
		b.t.Fatal(err)
	}
	return true
}

func (b *imageBuilder) text(path, content string) {
	b.dir(filepath.Dir(path))
	b.add(tar.Header{Name: path[1:], Mode: 0o644, Typeflag: tar.TypeReg}, []byte(content))
}

// dir adds a directory as it is on the host: /bin may be a link to usr/bin.
func (b *imageBuilder) dir(path string) {
	if path == "/" {
		return
	}
	b.dir(filepath.Dir(path))
	if target, err := os.Readlink(path); err == nil {
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		b.dir(target)
		b.add(tar.Header{Name: path[1:], Linkname: target, Mode: 0o777, Typeflag: tar.TypeSymlink}, nil)
		return
	}
	mode := int64(0o755)
	if path == "/tmp" || path == "/var/tmp" {
		mode = 0o1777
	}
	b.add(tar.Header{Name: path[1:] + "/", Mode: mode, Typeflag: tar.TypeDir}, nil)
}

// file adds a file under the requested name, following links.
func (b *imageBuilder) file(path string) {
	b.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	b.dir(filepath.Dir(path))
	b.add(tar.Header{Name: path[1:], Mode: 0o755, Typeflag: tar.TypeReg}, content)
}

var libraryPath = regexp.MustCompile(`/\S+`)

// program adds a host program, or a library by its path, and the libraries that
// ldd(1) names.
func (b *imageBuilder) program(name string) {
	b.t.Helper()
	path := name
	if !filepath.IsAbs(path) {
		var err error
		if path, err = exec.LookPath(name); err != nil {
			b.t.Fatal(err)
		}
	}
	b.file(path)
	libraries, err := exec.Command("ldd", path).Output()
	if err != nil {
		return // a static program
	}
	for _, library := range libraryPath.FindAllString(string(libraries), -1) {
		b.file(library)
	}
}

func (b *imageBuilder) tree(root string) {
	b.t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			b.file(path)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}
