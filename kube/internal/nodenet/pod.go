// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// Pods is where container runtimes keep the network namespaces of pods.
const Pods = "/var/run/netns"

// podNetns opens the network namespace of a pod. It takes only a file directly in the
// directory of those, and never the node's own namespace.
func (s *server) podNetns(path string) (*os.File, error) {
	dir, name := filepath.Split(path)
	if dir = filepath.Clean(dir); dir != s.o.Pods && dir != strings.TrimPrefix(s.o.Pods, "/var") || name == "" || name == "." || name == ".." {
		return nil, fmt.Errorf("network namespace %q: not in %s, where pods have theirs", path, s.o.Pods)
	}
	file, err := openIn(s.o.Pods, name)
	if err != nil {
		return nil, fmt.Errorf("network namespace %s: %w", path, err)
	}
	if err := checkPod(file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("network namespace %s: %w", path, err)
	}
	return file, nil
}

// openIn opens a file of a directory, following no link.
func openIn(dir, name string) (*os.File, error) {
	root, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	fd, err := unix.Openat2(int(root.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// checkPod refuses what is not a network namespace, and the node's own.
func checkPod(file *os.File) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &fs); err != nil {
		return err
	}
	if fs.Type != unix.NSFS_MAGIC {
		return errors.New("it is not a namespace")
	}
	if kind, err := unix.IoctlRetInt(int(file.Fd()), unix.NS_GET_NSTYPE); err != nil || kind != unix.CLONE_NEWNET {
		return errors.New("it is not a network namespace")
	}
	own, err := host.HostNetns.Inode()
	if err != nil {
		return err
	}
	its, err := host.OfFile(file).Inode()
	if err == nil && its == own {
		err = errors.New("it is that of the node itself")
	}
	return err
}
