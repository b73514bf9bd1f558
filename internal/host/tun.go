// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// TunDevice is the file by which programs attach to TUN interfaces of their namespace.
const TunDevice = "/dev/net/tun"

// Tun is a TUN interface that lasts without a program, and to which programs of one user
// may attach, one at a time.
type Tun struct {
	Name  string // 1–15 bytes
	IP    netip.Prefix
	MTU   int // bytes of L3 packet
	Owner int // uid
}

// RenewTun makes the interface in the namespace, in place of one that no program is
// attached to: a program can change the owner of its interface, and let it end. An
// interface in use stays as it is.
func (n Netns) RenewTun(t Tun) error {
	exists, err := n.hasLink(t.Name)
	if err != nil {
		return err
	}
	if exists {
		switch err := n.attachTun(t.Name, nil); {
		case errors.Is(err, unix.EBUSY):
			return nil
		case err != nil:
			return err
		}
		if err := n.RemoveLink(t.Name); err != nil {
			return err
		}
	}
	if err := n.attachTun(t.Name, func(fd int) error { return keepTun(fd, t.Owner) }); err != nil {
		return err
	}
	return errors.Join(n.SetMTU(t.Name, t.MTU), n.NoOwnIPv6(t.Name), n.AddAddr(t.Name, t.IP), n.SetUp(t.Name))
}

// attachTun attaches to a TUN interface for the time of then, which may be nil. It makes the
// interface if there is none.
func (n Netns) attachTun(name string, then func(fd int) error) error {
	err := n.Do(func() error {
		fd, err := unix.Open(TunDevice, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return &Unsupported{What: "TUN interfaces", Why: TunDevice + ": " + err.Error(), Fix: "modprobe tun; in a container, pass " + TunDevice}
		}
		defer unix.Close(fd)
		request, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil || then == nil {
			return err
		}
		return then(fd)
	})
	if err != nil {
		return fmt.Errorf("TUN interface %s in %s: %w", name, n, err)
	}
	return nil
}

// keepTun gives the interface of fd to a user, and lets it last.
func keepTun(fd, owner int) error {
	if err := unix.IoctlSetInt(fd, unix.TUNSETOWNER, owner); err != nil {
		return fmt.Errorf("give it to user %d: %w", owner, err)
	}
	return unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1)
}

// CheckTunDevice is an error if users without privileges cannot open TunDevice.
func CheckTunDevice() (dev uint64, err error) {
	var st unix.Stat_t
	if err := unix.Stat(TunDevice, &st); err != nil {
		return 0, &Unsupported{What: "TUN interfaces", Why: TunDevice + ": " + err.Error(), Fix: "modprobe tun"}
	}
	const everyone = 0o006
	if mode := os.FileMode(st.Mode & 0o777); mode&everyone != everyone {
		return 0, &Unsupported{
			What: "TUN interfaces for functions without privileges", Why: fmt.Sprintf("%s has mode %#o", TunDevice, mode),
			Fix: "chmod 666 " + TunDevice + ", as udev does",
		}
	}
	return st.Rdev, nil
}
