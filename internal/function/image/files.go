// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/library"
)

// isLibrary reports whether one of Drayage's programs is a library.
func isLibrary(name string) bool { return strings.HasSuffix(name, ".so") }

// folderOf is where in /usr/local one of Drayage's programs goes.
func folderOf(name string) string {
	if isLibrary(name) {
		return "lib"
	}
	return "bin"
}

func ownProgram(name string) (string, error) {
	if isLibrary(name) {
		return library.Library{What: "the library", File: name, Build: "make build"}.Find()
	}
	path, err := host.OwnProgram(name)
	if err != nil {
		return "", fmt.Errorf("the program %s is missing: make build puts it next to dray", name)
	}
	return path, nil
}

// writeNew writes a file that must not exist yet.
func writeNew(path string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close(), os.Chmod(path, mode)) // whatever the umask
}

// copyTree copies files, folders and links within them into a folder that may exist.
// Files lose everything but their content and whether they can be executed.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case d.IsDir():
			return host.MakeDirs(target, 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			return errors.Join(err, os.Symlink(link, target))
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is neither file, folder nor link", name)
		}
		return copyRegular(path, d, target)
	})
}

func copyRegular(path string, d fs.DirEntry, target string) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return writeNew(target, text, 0o644|info.Mode().Perm()&0o111)
}

// writeFiles writes files, by path, below a folder.
func writeFiles(files map[string][]byte, to string) error {
	for path, text := range files {
		target := filepath.Join(to, path)
		if err := host.MakeDirs(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := writeNew(target, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// giveAway makes a tree belong to another user, who may change it.
func giveAway(dir string, uid int) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, uid, uid))
	})
}
