// SPDX-License-Identifier: Apache-2.0

// Package socket makes the sockets at which programs of a node answer each other.
package socket

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

// Serve serves each connection to a socket of root until ctx ends.
func Serve(ctx context.Context, path string, serve func(*net.UnixConn)) error {
	l, err := Listen(path)
	if err != nil {
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

// Listen makes a socket that only root can open. During an update, the new instance of a
// program replaces the socket of the old one, which is ending.
func Listen(path string) (*net.UnixListener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	unfinished := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() { // which no rename replaces
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("a directory is in the place of a socket: %w", err)
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: unfinished, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(unfinished, 0o600), os.Rename(unfinished, path)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
