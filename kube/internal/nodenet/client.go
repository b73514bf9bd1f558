// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/spec/chain"
)

// Client calls the server of a directory. Each call has a connection of its own.
type Client struct{ Dir string }

// ErrAbsent says that no server runs.
var ErrAbsent = errors.New("dray-net does not run on this node")

// Info says what the node offers.
func (c Client) Info(ctx context.Context) (Info, error) {
	r, _, err := c.call(ctx, request{Info: true})
	if err == nil && r.Info == nil {
		err = errors.New("dray-net: no answer in the answer")
	}
	if err != nil {
		return Info{}, err
	}
	return *r.Info, nil
}

// Apply makes halves, or changes them to what is asked for. With prune it then removes
// all others. The error of one half is in its Made.
func (c Client) Apply(ctx context.Context, halves []Half, prune bool) ([]Made, error) {
	r, _, err := c.call(ctx, request{Apply: &applyRequest{Halves: halves, Prune: prune}})
	return r.Made, err
}

// List returns all halves.
func (c Client) List(ctx context.Context) ([]Made, error) {
	r, _, err := c.call(ctx, request{List: true})
	return r.Made, err
}

// Sockets opens packet sockets on an interface of a half, one for each queue: on Device, or
// on the PortDevice of a half with ports. The caller closes them.
func (c Client) Sockets(ctx context.Context, half, device string, queues int) ([]int, error) {
	_, files, err := c.call(ctx, request{Sockets: &socketsRequest{Half: half, Device: device, Queues: queues}})
	defer closeFiles(files)
	if err == nil && len(files) != queues {
		err = fmt.Errorf("dray-net: %d sockets for %d queues", len(files), queues)
	}
	if err != nil {
		return nil, err
	}
	fds := make([]int, len(files))
	for i, f := range files {
		if fds[i], err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			closeAll(fds[:i])
			return nil, err
		}
	}
	return fds, nil
}

// Measured returns what was measured of a half after the interval with that number of that epoch; 0: all
// that is kept.
func (c Client) Measured(ctx context.Context, half string, mac chain.MAC, epoch, after uint64) (*Measured, error) {
	r, _, err := c.call(ctx, request{Measured: &measuredRequest{half, mac, epoch, after}})
	if err == nil && r.Measured == nil {
		err = errors.New("dray-net: no answer in the answer")
	}
	return r.Measured, err
}

func (c Client) call(ctx context.Context, q request) (r response, files []*os.File, err error) {
	conn, err := dial(ctx, controlSocket(c.Dir))
	if err != nil {
		return r, nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	defer conn.Close()
	if err := send(conn, q); err != nil {
		return r, nil, fmt.Errorf("dray-net: %w", err)
	}
	files, err = receive(conn, &r)
	if err == nil && r.Error != "" {
		err = errors.New(r.Error)
	}
	if err != nil {
		return r, files, fmt.Errorf("dray-net: %w", err)
	}
	return r, files, nil
}

// dial connects, and bounds everything on the connection.
func dial(ctx context.Context, path string) (*net.UnixConn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(callTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	_ = c.SetDeadline(deadline)
	return c.(*net.UnixConn), nil
}
