// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNotRegular says that something else is in a file's place.
var ErrNotRegular = errors.New("not a file")

// ReadRegular reads a regular file of at most most bytes. It follows no symbolic link at the
// end of the path, and neither waits for a pipe nor reads a device.
func ReadRegular(path string, most int64) ([]byte, error) {
	f, err := OpenRegular(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return b, err
}

// OpenRegular opens an existing regular file; it is an error if there is anything else.
func OpenRegular(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, how|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, irregular(path, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// irregular names what is in a file's place, if that is why it could not be opened.
func irregular(path string, err error) error {
	if info, statErr := os.Lstat(path); statErr == nil && !info.Mode().IsRegular() {
		return notRegular(path, info)
	}
	return err
}

func notRegular(path string, info fs.FileInfo) error {
	kind := "a special file"
	switch {
	case info.IsDir():
		kind = "a directory"
	case info.Mode()&fs.ModeSymlink != 0:
		kind = "a symbolic link"
	case info.Mode()&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	}
	return fmt.Errorf("%s is %s, %w", path, kind, ErrNotRegular)
}

// ReplaceFile replaces a file atomically, and whatever else is in its place.
func ReplaceFile(path string, content []byte, mode fs.FileMode) error {
	part := path + ".new"
	if err := errors.Join(Vacate(part), Vacate(path)); err != nil {
		return err
	}
	if err := os.WriteFile(part, content, mode); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// Vacate removes what is at a path, unless that is a regular file: no rename replaces a
// directory, and opening a pipe waits.
func Vacate(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil || info.Mode().IsRegular():
		return err
	}
	return os.RemoveAll(path)
}
