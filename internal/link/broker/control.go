// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// controlName is the control socket in the broker's directory.
const controlName = "control"

const (
	controlCallers = 16                     // served at once
	maxRequest     = 1 << 20                // bytes
	respondTimeout = 5 * time.Second        // for a caller that does not read
	acceptPause    = 100 * time.Millisecond // after a failed accept
)

// control serves the control socket. A connection sends one request, a line of
// JSON, and gets one line back. Only the broker's own user can connect.
type control struct {
	broker   *broker
	listener *net.UnixListener
	socket   place
	callers  sync.WaitGroup
	slots    chan struct{}
}

// call is one pending request.
type call struct {
	broker *broker
	conn   *net.UnixConn
	params json.RawMessage
}

// methods are the methods of requests. The value that a method returns is the
// result; a method that has already answered returns errAnswered.
var methods = map[string]func(context.Context, *call) (any, error){
	"add":    bounded(callLink((*broker).add)),
	"relink": bounded(callLink((*broker).relink)),
	"remove": bounded(func(ctx context.Context, c *call) (any, error) {
		var name string
		if err := c.decode(&name); err != nil {
			return nil, err
		}
		return nil, c.broker.remove(ctx, name)
	}),
	"capture": callCapture,
	"status":  func(ctx context.Context, c *call) (any, error) { return c.broker.status(ctx) },
}

// errAnswered is returned by a method that has written its own response.
var errAnswered = errors.New("answered")

// bounded cancels a call when its caller hangs up. Repeated requests for a
// busy link must not use up the connections of other callers.
func bounded(f func(context.Context, *call) (any, error)) func(context.Context, *call) (any, error) {
	return func(ctx context.Context, c *call) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return f(ctx, c)
	}
}

func callLink(f func(*broker, context.Context, Link) error) func(context.Context, *call) (any, error) {
	return func(ctx context.Context, c *call) (any, error) {
		var l Link
		if err := c.decode(&l); err != nil {
			return nil, err
		}
		return nil, f(c.broker, ctx, l)
	}
}

// decode reads the parameters; unknown fields are errors.
func (c *call) decode(v any) error {
	d := json.NewDecoder(bytes.NewReader(c.params))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("parameters: %w", err)
	}
	return nil
}

func newControl(b *broker, dir string) (*control, error) {
	d, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := os.RemoveAll(filepath.Join(dir, controlName)); err != nil { // whatever is there
		return nil, fmt.Errorf("control socket: %w", err)
	}
	// Only the broker's user can enter the directory, so the mode may be set later.
	address := &net.UnixAddr{Name: procPath(int(d.Fd()), controlName), Net: "unix"}
	l, err := net.ListenUnix("unix", address)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err := unix.Fchmodat(int(d.Fd()), controlName, 0o600, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), l.Close())
	}
	at, err := placed(int(d.Fd()), filepath.Join(dir, controlName))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), l.Close())
	}
	return &control{broker: b, listener: l, socket: at, slots: make(chan struct{}, controlCallers)}, nil
}

// serve takes requests until ctx ends.
func (c *control) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer c.callers.Wait()
	defer cancel() // cancel the callers before waiting for them
	defer context.AfterFunc(ctx, func() { c.listener.Close() })()
	for {
		c.slots <- struct{}{}
		conn, err := c.listener.AcceptUnix()
		if err != nil {
			<-c.slots
			if ctx.Err() != nil {
				return nil
			}
			c.broker.log.print("control socket: %v", err)
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			time.Sleep(acceptPause)
			continue
		}
		c.callers.Add(1)
		go func() {
			defer c.callers.Done()
			defer func() { <-c.slots }()
			c.answer(ctx, conn)
		}()
	}
}

// answer serves one request.
func (c *control) answer(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_ = conn.SetReadDeadline(time.Now().Add(c.broker.timeouts.request))
	var q request
	if err := json.NewDecoder(io.LimitReader(lastLook{conn}, maxRequest)).Decode(&q); err != nil {
		if !errors.Is(err, io.EOF) { // the client only checked whether a broker runs
			respond(conn, nil, fmt.Errorf("request: %w", err))
		}
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	method, ok := methods[q.Method]
	if !ok {
		respond(conn, nil, fmt.Errorf("unknown method %q", q.Method))
		return
	}
	result, err := method(ctx, &call{broker: c.broker, conn: conn, params: q.Params})
	if !errors.Is(err, errAnswered) {
		respond(conn, result, err)
	}
}

// lastLook is a connection whose reads return what has come even if the deadline has passed
// since: this process may have had no CPU.
type lastLook struct{ *net.UnixConn }

func (c lastLook) Read(b []byte) (int, error) {
	n, late := c.UnixConn.Read(b)
	if !errors.Is(late, os.ErrDeadlineExceeded) {
		return n, late
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { n, failed = unix.Read(int(fd), b) })
	switch err = errors.Join(err, failed); {
	case errors.Is(err, unix.EAGAIN):
		return 0, late
	case err == nil && n == 0:
		return 0, io.EOF
	}
	return max(n, 0), err
}

// respond writes a response; the caller may have hung up.
func respond(conn *net.UnixConn, result any, err error) {
	var r response
	if err == nil {
		r.Result, err = json.Marshal(result)
	}
	if err != nil {
		r = response{Error: err.Error()}
	}
	_ = conn.SetWriteDeadline(time.Now().Add(respondTimeout))
	_ = json.NewEncoder(conn).Encode(r)
}

func (c *control) close() {
	c.listener.Close()
	if err := c.socket.unlink(); err != nil {
		c.broker.log.print("%v", err)
	}
}
