// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// damagedError says that what is at a path is not what its program wrote there.
type damagedError struct{ error }

func (e damagedError) Unwrap() error { return e.error }

// Damaged marks an error about what a file holds, which is the same at the next attempt.
func Damaged(err error) error { return damagedError{err} }

// IsDamaged reports whether a file could be read, and is not as its program wrote it. After any
// other error, such as too many open files, the file may be whole.
func IsDamaged(err error) bool {
	var damaged damagedError
	return errors.As(err, &damaged)
}

// ReadRegular reads a regular file of at most most bytes. It follows no symbolic link at the
// end of the path, and neither waits for a pipe nor reads a device.
func ReadRegular(path string, most int64) ([]byte, error) {
	f, err := OpenRegular(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	tooLong := Damaged(fmt.Errorf("%s has more than %d bytes", path, most))
	if info.Size() > most {
		return nil, tooLong
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1)) // it may grow
	if err == nil && int64(len(b)) > most {
		err = tooLong
	}
	return b, err
}

// ReadJSON reads a value from a regular file of at most most bytes.
func ReadJSON(path string, most int64, v any) error {
	b, err := ReadRegular(path, most)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return Damaged(fmt.Errorf("%s is malformed: %w", path, err))
	}
	return nil
}

// OpenRegular opens an existing regular file. Anything else in its place counts as damage.
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
	case info.Mode()&fs.ModeSocket != 0:
		kind = "a socket"
	}
	return Damaged(fmt.Errorf("%s is %s, not a file", path, kind))
}

// Unfinished ends the names of files that ReplaceFile has not finished.
const Unfinished = ".new"

// ReplaceFile replaces a file atomically, and whatever else is in its place. A reader finds the
// old or the new one, even if several processes replace it.
func ReplaceFile(path string, content []byte, mode fs.FileMode) error {
	return replaceFile(path, content, mode, func(*os.File) error { return nil })
}

// ReplaceFileSynced is ReplaceFile for what must outlive a power failure.
func ReplaceFileSynced(path string, content []byte, mode fs.FileMode) error {
	return replaceFile(path, content, mode, (*os.File).Sync)
}

func replaceFile(path string, content []byte, mode fs.FileMode, finish func(*os.File) error) error {
	if err := Vacate(path); err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+Unfinished)
	if err != nil {
		return err
	}
	_, err = part.Write(content)
	if err == nil {
		err = errors.Join(part.Chmod(mode), finish(part))
	}
	if err = errors.Join(err, part.Close()); err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return nil
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
