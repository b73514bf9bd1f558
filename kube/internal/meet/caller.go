// SPDX-License-Identifier: Apache-2.0

package meet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// again is the time between two calls at a broker that is away.
const again = 200 * time.Millisecond

// maxPath bounds the path of a socket that is shown, in bytes.
const maxPath = 4096

// Shown is another pod's socket.
type Shown struct {
	Socket *os.File // no one can do more with it than connect
	Path   string   // as its listener bound it
	// Other is connected to the program that shows the socket, and hangs up when that ends.
	Other *net.UnixConn
}

// ProcPath is a path at which a process connects that has the socket as descriptor fd.
func ProcPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// Close forgets the socket.
func (s *Shown) Close() error { return errors.Join(s.Socket.Close(), s.Other.Close()) }

// Gone waits until the program that shows the socket has ended, or ctx ends.
func (s *Shown) Gone(ctx context.Context) {
	_ = s.Other.SetReadDeadline(time.Time{}) // an earlier call has left one
	stop := context.AfterFunc(ctx, func() { _ = s.Other.SetReadDeadline(time.Now()) })
	defer stop()
	_, _ = s.Other.Read(make([]byte, 1))
}

// Look calls at a broker's socket until the other end shows its own.
func Look(ctx context.Context, door string) (*Shown, error) {
	for {
		s, err := look(ctx, door)
		if err == nil {
			return s, nil
		}
		if errors.Is(err, os.ErrPermission) {
			return nil, err
		}
		if err := host.Sleep(ctx, again); err != nil {
			return nil, err
		}
	}
}

func look(ctx context.Context, door string) (*Shown, error) {
	broker, err := call(ctx, door)
	if err != nil {
		return nil, err
	}
	_, half, err := receive(ctx, broker)
	err = errors.Join(err, broker.Close())
	if err != nil {
		return nil, err
	}
	other, err := connection(half)
	if err != nil {
		return nil, err
	}
	path, socket, err := receive(ctx, other)
	if err != nil {
		return nil, errors.Join(err, other.Close())
	}
	return &Shown{Socket: socket, Path: path, Other: other}, nil
}

// Show calls at a broker's socket, and shows a socket to each that the broker introduces, until
// ctx ends. await returns when the socket at path has a listener. Only the latest other counts.
func Show(ctx context.Context, door, path string, await func(context.Context) error) error {
	previous := func() {}
	defer func() { previous() }()
	for {
		err := showAll(ctx, door, func(half *os.File) {
			previous()
			var one context.Context
			one, previous = context.WithCancel(ctx)
			go show(one, half, path, await)
		})
		if errors.Is(err, os.ErrPermission) {
			return err
		}
		if err := host.Sleep(ctx, again); err != nil {
			return nil
		}
	}
}

// showAll calls f for each half of a pair that comes from a broker.
func showAll(ctx context.Context, door string, f func(half *os.File)) error {
	broker, err := call(ctx, door)
	if err != nil {
		return err
	}
	defer broker.Close()
	for {
		_, half, err := receive(ctx, broker)
		if err != nil {
			return err
		}
		f(half)
	}
}

// show shows the socket to one other, and keeps the connection until that hangs up or ctx ends.
func show(ctx context.Context, half *os.File, path string, await func(context.Context) error) {
	other, err := connection(half)
	if err != nil {
		return
	}
	defer other.Close()
	if await(ctx) != nil {
		return
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	_, _, err = other.WriteMsgUnix([]byte(path), unix.UnixRights(fd), nil)
	if errors.Join(err, unix.Close(fd)) != nil {
		return
	}
	(&Shown{Other: other}).Gone(ctx)
}

func call(ctx context.Context, door string) (*net.UnixConn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "unixpacket", door)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

// connection makes one of a socket, and closes the file.
func connection(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("it is no unix socket"), c.Close())
	}
	return u, nil
}

// receive takes one message with one descriptor.
func receive(ctx context.Context, c *net.UnixConn) (string, *os.File, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Now()) })
	defer stop()
	text, control := make([]byte, maxPath), make([]byte, unix.CmsgSpace(4))
	n, oob, _, _, err := c.ReadMsgUnix(text, control) // with MSG_CMSG_CLOEXEC
	if err != nil {
		return "", nil, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:oob])
	if err != nil {
		return "", nil, err
	}
	var all []int
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			all = append(all, fds...)
		}
	}
	if len(all) == 1 {
		return string(text[:n]), os.NewFile(uintptr(all[0]), "received"), nil
	}
	for _, fd := range all { // the buffer has room for two
		go unix.Close(fd) // it may block for as long as the sender likes
	}
	if n == 0 {
		return "", nil, io.EOF
	}
	return "", nil, fmt.Errorf("a message of %d bytes with %d descriptors, not one", n, len(all))
}
