// SPDX-License-Identifier: Apache-2.0

package host

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// StatIn describes the file at a path as a process with that root would see it: links,
// also of directories, are resolved below the root.
func StatIn(root, path string) (fs.FileInfo, error) {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: root, Err: err}
	}
	defer unix.Close(dir)
	fd, err := openBelow(dir, path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	return f.Stat()
}
