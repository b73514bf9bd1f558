// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// listen serves each connection to a socket of root until ctx ends.
func listen(ctx context.Context, path string, serve func(*net.UnixConn)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// During an update, the new instance replaces the socket of the old one, which is ending.
	unfinished := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: unfinished, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(unfinished, 0o600), os.Rename(unfinished, path)); err != nil {
		return err
	}
	var connections sync.WaitGroup
	defer connections.Wait()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		c, err := l.AcceptUnix()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		connections.Go(func() {
			defer c.Close()
			serve(c)
		})
	}
}
