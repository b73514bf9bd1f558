// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bufio"
	"context"
	"crypto/rand"
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

	"github.com/drayage/dray/internal/function/guest/wire"
	"github.com/drayage/dray/internal/host"
)

// silence is how long a guest may send nothing while a program runs: its agent
// sends a beat each second. A busy emulating host may be slow.
var silence = 60 * time.Second

// Channel is one connection to a guest's agent, on which one program runs.
type Channel struct {
	conn   net.Conn
	unlock func()
	in     *bufio.Reader
}

// ErrBusy means that every channel of a guest is in use.
var ErrBusy = fmt.Errorf("all %d channels of the guest are in use", Channels)

// Dial takes a free channel of the guest in dir, and waits until the agent
// answers on it.
func Dial(ctx context.Context, dir string) (*Channel, error) {
	for i := range Channels {
		// This process holds the lock: if it is killed, its channel is freed.
		unlock, err := host.TryLockFile(filepath.Join(dir, channelFile(i)+".lock"), unix.LOCK_EX)
		if errors.Is(err, host.ErrLocked) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("guest in %s: %w", dir, err)
		}
		conn, err := connect(ctx, dir, channelFile(i))
		if err != nil {
			unlock()
			return nil, err
		}
		c := &Channel{conn: conn, unlock: unlock, in: bufio.NewReaderSize(conn, wire.MaxPayload)}
		if err := c.greet(ctx); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		return c, nil
	}
	return nil, ErrBusy
}

// greet makes the agent drop the channel's previous client.
func (c *Channel) greet(ctx context.Context) error {
	nonce := make([]byte, wire.NonceSize)
	if _, err := rand.Read(nonce); err != nil {
		return err
	}
	defer closeWith(ctx, c.conn)()
	// QEMU accepts the connection even if its guest hangs.
	if err := c.conn.SetDeadline(time.Now().Add(silence)); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	if _, err := c.conn.Write(wire.Append(wire.Preamble(), wire.Hello, nonce)); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	if err := wire.Await(c.in, nonce); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = ErrSilent
		}
		return errors.Join(ctx.Err(), fmt.Errorf("the guest's agent: %w", err))
	}
	return c.conn.SetDeadline(time.Time{})
}

// Close ends the session: any program still running on the channel is killed.
func (c *Channel) Close() error {
	defer c.unlock()
	return c.conn.Close()
}

// Command is a program to run in a guest.
type Command struct {
	wire.Request
	Stdin          io.Reader // nil: none
	Stdout, Stderr io.Writer // nil: discarded
	// Signals are forwarded to the program; nil: none.
	Signals <-chan unix.Signal
	// Started is called once the program runs; it may be nil.
	Started func()
}

// StartError means that the guest could not start a program.
type StartError struct {
	Program, Reason string
}

func (e *StartError) Error() string {
	return fmt.Sprintf("start %q in the guest: %s", e.Program, e.Reason)
}

// killGrace is how long a guest may take to kill a program.
const killGrace = 20 * time.Second

// ErrSilent means that a guest no longer answers.
var ErrSilent = fmt.Errorf("the guest has sent nothing for %v: it hangs", silence)

// Run runs a program to its end and returns its exit status, 128+n for signal n.
// If ctx ends, the program and its descendants are killed. A channel runs one
// program; Close it afterwards.
func (c *Channel) Run(ctx context.Context, command Command) (int, error) {
	request, err := json.Marshal(command.Request)
	if err != nil {
		return 0, err
	}
	if len(request) > wire.MaxPayload {
		return 0, fmt.Errorf("start %q in the guest: its arguments and environment take %d bytes, more than %d", command.Argv[0], len(request), wire.MaxPayload)
	}
	s := &stream{conn: c.conn, credit: wire.Window, more: make(chan struct{}, 1), over: make(chan struct{})}
	defer close(s.over)
	if err := s.send(wire.Exec, request); err != nil {
		return 0, err
	}
	stop := context.AfterFunc(ctx, func() {
		// Do not wait for a guest that does not end it.
		time.AfterFunc(killGrace, func() { c.conn.Close() })
		_ = s.send(wire.Signal, []byte{byte(unix.SIGKILL)}) // Run waits for its end
	})
	defer stop()
	return s.receive(ctx, wire.NewReader(c.in), command)
}

// stream is a program that runs on a channel.
type stream struct {
	conn net.Conn
	over chan struct{} // closed when the program has ended

	mu     sync.Mutex
	credit int           // bytes of input that the agent has room for
	more   chan struct{} // holds an element after a credit
}

func (s *stream) send(kind wire.Type, payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.conn.Write(wire.Append(nil, kind, payload))
	return err
}

// receive handles the guest's frames until the program ends.
func (s *stream) receive(ctx context.Context, in *wire.Reader, command Command) (int, error) {
	out := map[wire.Type]io.Writer{wire.Stdout: command.Stdout, wire.Stderr: command.Stderr}
	started := false
	for {
		_ = s.conn.SetReadDeadline(time.Now().Add(silence)) // a closed connection shows when it is read
		kind, payload, err := in.Next()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = ErrSilent
		}
		if err != nil {
			return 0, errors.Join(ctx.Err(), fmt.Errorf("%q in the guest: %w", command.Argv[0], err))
		}
		switch {
		case kind == wire.Failed && !started:
			return 0, &StartError{Program: command.Argv[0], Reason: string(payload)}
		case kind == wire.Started && !started:
			started = true
			s.begin(command)
		case kind == wire.Beat:
		case !started:
			return 0, fmt.Errorf("%w from the guest: type %d before the program's start", wire.ErrMalformed, kind)
		case out[kind] != nil:
			if _, err := out[kind].Write(payload); err != nil {
				out[kind] = io.Discard // like a program whose reader has gone
			}
		case kind == wire.Stdout, kind == wire.Stderr:
		case kind == wire.Credit, kind == wire.Exit:
			n, err := wire.Uint32(payload)
			if err != nil {
				return 0, err
			}
			if kind == wire.Exit {
				return exitStatus(ctx, int(int32(n)))
			}
			s.credited(int(n))
		default:
			return 0, fmt.Errorf("%w from the guest: type %d", wire.ErrMalformed, kind)
		}
	}
}

// exitStatus is the guest's reported status, if a program can end with it.
func exitStatus(ctx context.Context, code int) (int, error) {
	if code < 0 || code > 255 {
		return 0, fmt.Errorf("%w from the guest: exit status %d", wire.ErrMalformed, code)
	}
	return code, ctx.Err()
}

// begin forwards input and signals.
func (s *stream) begin(command Command) {
	if command.Started != nil {
		command.Started()
	}
	go s.feed(command.Stdin)
	if command.Signals == nil {
		return
	}
	go func() {
		for {
			select {
			case sig := <-command.Signals:
				_ = s.send(wire.Signal, []byte{byte(sig)}) // the program may have ended
			case <-s.over:
				return
			}
		}
	}()
}

func (s *stream) credited(n int) {
	s.mu.Lock()
	s.credit = min(s.credit+n, wire.Window)
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// take takes the available credit, up to most; 0 if the program has ended.
func (s *stream) take(most int) int {
	for {
		s.mu.Lock()
		n := min(s.credit, most)
		s.credit -= n
		s.mu.Unlock()
		if n > 0 {
			return n
		}
		select {
		case <-s.more:
		case <-s.over:
			return 0
		}
	}
}

// feed sends the input as fast as the program takes it.
func (s *stream) feed(in io.Reader) {
	buf := make([]byte, wire.MaxPayload)
	for in != nil {
		n, err := in.Read(buf)
		for rest := buf[:n]; len(rest) > 0; {
			part := s.take(len(rest))
			if part == 0 || s.send(wire.Stdin, rest[:part]) != nil {
				return
			}
			rest = rest[part:]
		}
		if err != nil {
			break
		}
	}
	_ = s.send(wire.StdinEnd, nil) // the program may have ended
}

// Run runs a program in the guest in dir; see Channel.Run.
func Run(ctx context.Context, dir string, command Command) (int, error) {
	c, err := Dial(ctx, dir)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return c.Run(ctx, command)
}
