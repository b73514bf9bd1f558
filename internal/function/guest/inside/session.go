// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/guest/wire"
)

// beat is how often a client learns that the guest is alive.
const beat = time.Second

// session is one client of a channel, and its program.
type session struct {
	port io.Writer // the channel
	open bool      // a Hello has arrived
	// start starts a program: startProgram.
	start func(wire.Request, func(wire.Type, []byte) error) (*running, error)

	mu  sync.Mutex // of the channel's writers
	run *running
}

// frame handles one frame. The only error that is not the client's is a failed
// write.
func (s *session) frame(kind wire.Type, payload []byte) error {
	if kind == wire.Hello {
		s.end()
		if len(payload) != wire.NonceSize {
			return fmt.Errorf("%w: a nonce of %d bytes", wire.ErrMalformed, len(payload))
		}
		s.open = true
		return s.send(wire.Welcome, bytes.Clone(payload))
	}
	if !s.open {
		return nil // data from an earlier client
	}
	switch kind {
	case wire.Exec:
		return s.exec(payload)
	case wire.Stdin:
		return s.input(payload)
	case wire.StdinEnd:
		if s.run != nil {
			s.run.closeInput()
		}
	case wire.Signal:
		if len(payload) != 1 {
			return fmt.Errorf("%w: a signal of %d bytes", wire.ErrMalformed, len(payload))
		}
		if s.run != nil {
			s.run.signal(unix.Signal(payload[0]))
		}
	default:
		return fmt.Errorf("%w: type %d", wire.ErrMalformed, kind)
	}
	return nil
}

func (s *session) exec(payload []byte) error {
	if s.run != nil {
		return fmt.Errorf("%w: a second program", wire.ErrMalformed)
	}
	request, err := wire.ParseRequest(payload)
	if err != nil {
		return err
	}
	starting := make(chan struct{})
	go s.heartbeat(starting) // a container takes a while
	r, err := s.start(request, s.send)
	close(starting)
	if err != nil {
		return s.send(wire.Failed, []byte(truncate(reason(err))))
	}
	s.run = r
	if err := s.send(wire.Started, nil); err != nil {
		return err
	}
	r.begin()
	go s.heartbeat(r.done)
	return nil
}

// reason is why a program could not start, without what the client knows.
func reason(err error) string {
	var bad *os.PathError
	if errors.As(err, &bad) {
		return bad.Err.Error()
	}
	return err.Error()
}

func truncate(text string) string { return text[:min(len(text), wire.MaxPayload)] }

func (s *session) input(data []byte) error {
	if s.run == nil {
		return nil // the start failed, which the client does not know yet
	}
	if !s.run.feed(bytes.Clone(data)) {
		return fmt.Errorf("%w: more input than credited", wire.ErrMalformed)
	}
	return nil
}

func (s *session) heartbeat(until <-chan struct{}) {
	t := time.NewTicker(beat)
	defer t.Stop()
	for {
		select {
		case <-until:
			return
		case <-t.C:
			if s.send(wire.Beat, nil) != nil {
				return
			}
		}
	}
}

// end kills the client's processes, and forgets the client.
func (s *session) end() {
	if s.run != nil {
		s.interrupt(true)
		s.run.kill()
		<-s.run.done
		s.interrupt(false)
	}
	s.run, s.open = nil, false
}

// interrupt makes writers give up: their reader may be gone.
func (s *session) interrupt(yes bool) {
	f, ok := s.port.(*os.File)
	if !ok {
		return
	}
	when := time.Time{}
	if yes {
		when = time.Now()
	}
	_ = f.SetWriteDeadline(when) // an unread channel blocks no writer for long
}

// send writes one whole frame.
func (s *session) send(kind wire.Type, payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.port.Write(wire.Append(nil, kind, payload))
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, unix.EPIPE) {
		return nil // the client has gone; the next read ends
	}
	return err
}
