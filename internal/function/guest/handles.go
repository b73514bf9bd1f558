// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// firstHandle is the first file descriptor that a program inherits.
const firstHandle = 3

// handles are the files that QEMU inherits, by descriptor: it needs no right to
// make a socket, an interface or a log.
type handles struct {
	files    []*os.File
	channels []int
	qmp      int
	console  int
	taps     []int // one for each NIC, 0 for one without
}

func (h *handles) add(f *os.File) int {
	h.files = append(h.files, f)
	return firstHandle + len(h.files) - 1
}

func (h *handles) close() {
	for _, f := range h.files {
		f.Close()
	}
}

// open makes the guest's sockets and interfaces; its logs are added later.
func (c Config) open() (*handles, error) {
	h := &handles{}
	err := func() error {
		for i := range Channels {
			f, err := listen(c.Dir, channelFile(i))
			if err != nil {
				return err
			}
			h.channels = append(h.channels, h.add(f))
		}
		f, err := listen(c.Dir, fileQMP)
		if err != nil {
			return err
		}
		h.qmp = h.add(f)
		for _, n := range c.NICs {
			if n.Socket != "" {
				h.taps = append(h.taps, 0)
				continue
			}
			open := c.Place.Netns.OpenTap
			if n.Macvtap {
				open = c.Place.Netns.OpenMacvtap
			}
			if f, err = open(n.Tap); err != nil {
				return err
			}
			h.taps = append(h.taps, h.add(f))
		}
		return nil
	}()
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// listen makes a socket in a directory, replacing an earlier one. Its path may be
// longer than a socket's.
func listen(dir, name string) (*os.File, error) {
	at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("guest's directory %s: %w", dir, err)
	}
	defer unix.Close(at)
	// An earlier boot of the guest may have left its socket.
	if err := unix.Unlinkat(at, name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return nil, fmt.Errorf("guest in %s: %s: %w", dir, name, err)
	}
	path := fmt.Sprintf("/proc/self/fd/%d/%s", at, name)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("guest in %s: %w", dir, errors.New(strings.ReplaceAll(err.Error(), path, name)))
	}
	defer l.Close() // QEMU inherits a copy
	l.SetUnlinkOnClose(false)
	return l.File()
}
