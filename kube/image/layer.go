// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Layer writes the contents of a folder as a tar archive in lexical order. Every entry belongs to root and has
// the time created. It takes folders, regular files and symbolic links, and refuses everything else.
func Layer(w io.Writer, root string, created time.Time) error {
	out := tar.NewWriter(w)
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil || name == "." {
			return err
		}
		return add(out, file, name, entry, created)
	})
	if err != nil {
		return err
	}
	return out.Close()
}

func add(out *tar.Writer, file, name string, entry fs.DirEntry, created time.Time) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	link := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if link, err = os.Readlink(file); err != nil {
			return err
		}
	case !info.IsDir() && !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a folder nor a regular file nor a symbolic link", file)
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name = filepath.ToSlash(name)
	if info.IsDir() {
		header.Name += "/"
	}
	header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
	header.ModTime, header.AccessTime, header.ChangeTime = created, time.Time{}, time.Time{}
	header.Format = tar.FormatPAX
	if err := out.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	content, err := os.Open(file)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(out, content)
	return err
}
