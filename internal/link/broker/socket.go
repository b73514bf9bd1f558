// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker/wire"
)

// backlog bounds a port's connections that wait in the kernel.
const backlog = 8

// openDir opens a directory. Nothing else in its place makes it wait.
func openDir(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
}

// listen binds a SEQPACKET socket at path for one user; no other user can ever
// connect. It replaces the socket of an earlier broker.
func listen(path string, owner int) (fd int, at place, err error) {
	dir, err := openDir(filepath.Dir(path))
	if err != nil {
		return -1, at, fmt.Errorf("directory of the socket: %w", err)
	}
	defer dir.Close()
	if err := removeSocket(int(dir.Fd()), filepath.Base(path)); err != nil {
		return -1, at, fmt.Errorf("%s: %w", path, err)
	}
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, at, fmt.Errorf("socket: %w", err)
	}
	if at, err = bind(s, int(dir.Fd()), path, owner); err != nil {
		return -1, at, errors.Join(fmt.Errorf("socket %s: %w", path, err), unix.Close(s))
	}
	return s, at, nil
}

func bind(fd, dir int, path string, owner int) (at place, err error) {
	name := filepath.Base(path)
	// The file inherits the socket's mode, so it never has another.
	if err := unix.Fchmod(fd, 0o600); err != nil {
		return at, err
	}
	// An address has at most 108 bytes; the path may be longer.
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: procPath(dir, name)}); err != nil {
		return at, err
	}
	if err := unix.Fchownat(dir, name, owner, -1, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return at, err
	}
	if at, err = placed(dir, path); err != nil {
		return at, err
	}
	return at, unix.Listen(fd, backlog)
}

// removeSocket removes the file only if it is a socket.
func removeSocket(dir int, name string) error {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return errors.New("a file that is not a socket exists there: remove it")
	}
	return unix.Unlinkat(dir, name, 0)
}

// place identifies a socket of this broker in the file system.
type place struct {
	path       string
	dev, inode uint64
}

// placed is the place of a newly bound socket.
func placed(dir int, path string) (place, error) {
	var st unix.Stat_t
	err := unix.Fstatat(dir, filepath.Base(path), &st, unix.AT_SYMLINK_NOFOLLOW)
	return place{path, st.Dev, st.Ino}, err
}

// unlink removes the socket, unless a later broker of the same chain has
// replaced it.
func (p place) unlink() error {
	dir, err := openDir(filepath.Dir(p.path))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	now, err := placed(int(dir.Fd()), p.path)
	if errors.Is(err, unix.ENOENT) || err == nil && now != p {
		return nil
	}
	if err != nil {
		return err
	}
	return removeSocket(int(dir.Fd()), filepath.Base(p.path))
}

// send sends one message with descriptors, which the caller still owns. It
// never blocks: it returns EAGAIN if the receiver does not read.
func send(fd int, m wire.Message, fds ...int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	_, err := unix.SendmsgN(fd, m.Marshal(), rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	return err
}

// unread reports whether the peer has not yet received everything sent.
func unread(fd int) bool {
	n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	return err == nil && n > 0
}

// errGone is returned for a connection that has ended.
var errGone = errors.New("hung up")

// receive takes one message, and at most one descriptor if mayBring is set; -1 is none.
// It accepts every descriptor that came, because the kernel closes those it must drop in
// this thread, and close can block for as long as the sender likes. The discarder closes
// what the broker does not want.
func receive(fd int, mayBring bool, d *discarder) (wire.Message, int, error) {
	buffer := make([]byte, wire.MaxMessage+1)
	rights := make([]byte, unix.CmsgSpace(4*rightsMax))
	n, rn, flags, _, err := unix.Recvmsg(fd, buffer, rights, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			return wire.Message{}, -1, unix.EAGAIN
		}
		return wire.Message{}, -1, errGone
	}
	fds := rightsOf(rights[:rn])
	count := len(fds)
	if flags&unix.MSG_CTRUNC != 0 { // this process has no descriptor left
		count = rightsMax
	}
	if n == 0 && count == 0 {
		return wire.Message{}, -1, errGone
	}
	m, err := wire.Parse(buffer[:n], min(count, wire.MaxFDs+1), wire.FromEnd)
	if err == nil && count == 1 && mayBring {
		return m, fds[0], nil
	}
	if err == nil && count > 0 {
		err = unix.EPROTO
	}
	d.discard(fds...)
	return m, -1, err
}

// rightsOf returns the descriptors in control messages.
func rightsOf(control []byte) []int {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	var all []int
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			all = append(all, fds...)
		}
	}
	return all
}

// hungUp reports whether the peer of a connection, or the process of a pidfd,
// is gone.
func hungUp(fd int, pidfd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}, {Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}

// peerOf returns the process that connected, and its pidfd; -1 if the kernel has none.
func peerOf(fd int) (pid, pidfd int) {
	if cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
		pid = int(cred.Pid)
	}
	if fd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD); err == nil {
		return pid, fd
	}
	if pid <= 0 {
		return pid, -1
	}
	// Before 6.5: the PID may have been reused, so check the connection again.
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return pid, -1
	}
	if hungUp(fd, -1) {
		_ = unix.Close(pidfd)
		return pid, -1
	}
	return pid, pidfd
}
