// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/spec/sockpath"
)

// ShortenDir makes the link that sockpath.Dir names, if any. DropShortDirs removes it.
func ShortenDir(dir string, names ...string) error {
	if sockpath.Dir(dir, names...) == dir {
		return nil
	}
	err := linkShort(dir)
	for try := 0; errors.Is(err, fs.ErrNotExist) && try < 100; try++ { // DropShortDirs removed the directory at that moment
		err = linkShort(dir)
	}
	if err != nil {
		return fmt.Errorf("a short path for the sockets in %s: %w; set DRAY_STATE to a shorter directory", dir, err)
	}
	return nil
}

func linkShort(dir string) error {
	if err := MakeDirs(sockpath.Links, 0o711); err != nil {
		return err
	}
	link := sockpath.Link(dir)
	err := os.Symlink(dir, link)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	target, err := os.Readlink(link)
	if err == nil && target != dir {
		return fmt.Errorf("%s leads to %s", link, target)
	}
	return err
}

// DropShortDirs removes the links of ShortenDir to directories below one.
func DropShortDirs(above string) error {
	entries, err := os.ReadDir(sockpath.Links)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		link := filepath.Join(sockpath.Links, e.Name())
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, above+"/") {
			errs = append(errs, os.Remove(link))
		}
	}
	_ = os.Remove(sockpath.Links) // fails if other directories have links
	return errors.Join(errs...)
}

// DialUnix connects to a socket, whose path may be longer than an address.
func DialUnix(ctx context.Context, network, path string) (*net.UnixConn, error) {
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(dir)
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, fmt.Sprintf("/proc/self/fd/%d/%s", dir, filepath.Base(path)))
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err // without the path of the descriptor
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return conn.(*net.UnixConn), nil
}
