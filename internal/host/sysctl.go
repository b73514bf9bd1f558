// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// RefuseRoutes keeps an interface from taking routes, addresses and name servers from
// its other end (IPv6 router advertisements). It works where /proc/sys is
// read-only, for that is a mount's property.
func (n Netns) RefuseRoutes(name string) error {
	if name == "" || strings.ContainsAny(name, "/.") {
		return fmt.Errorf("interface %q: not a name that a file can have", name)
	}
	err := n.Do(func() error { return writeProc("sys/net/ipv6/conf/"+name+"/accept_ra", "0") })
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a kernel without IPv6
	}
	if err != nil {
		return fmt.Errorf("refuse router advertisements on %s in %s: %w", name, n, err)
	}
	return nil
}

// writeProc writes to a file of a procfs that is mounted nowhere.
func writeProc(path, text string) error {
	context, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(context)
	if err := unix.FsconfigCreate(context); err != nil {
		return err
	}
	tree, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	file, err := unix.Openat(tree, path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(file)
	_, err = unix.Write(file, []byte(text))
	return err
}
