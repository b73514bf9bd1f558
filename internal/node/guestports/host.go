// SPDX-License-Identifier: Apache-2.0

package guestports

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/function/guest/wire"
)

// startPatience bounds the start of the relay in the guest.
const startPatience = time.Minute

// insideProgram starts the guest's half: the agent's own program.
var insideProgram = wire.Request{Argv: []string{"/proc/1/exe", "ports"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/"}

// relay is the host's half.
type relay struct {
	slots slots
	out   *stream
	ports []*hostPort
}

// slots are a machine's windows, as the host sees them.
type slots interface {
	plug(ctx context.Context, window, file int, size uint64) error
	unplug(ctx context.Context, window int) error
}

// machine is the guest in a directory.
type machine string

func (m machine) plug(ctx context.Context, window, file int, size uint64) error {
	return guest.Plug(ctx, string(m), window, file, size)
}

func (m machine) unplug(ctx context.Context, window int) error {
	return guest.Unplug(ctx, string(m), window)
}

func newRelay(s slots, to io.Writer, ports []guest.Port) *relay {
	r := &relay{slots: s, out: &stream{out: to}}
	for i, p := range ports {
		r.ports = append(r.ports, newHostPort(r, uint8(i), p))
	}
	return r
}

// Relay serves the native ports of the guest in dir, if it has any. It returns when a
// program there can open them. failed gets an error when they are not served any more;
// stop ends the relay.
func Relay(ctx context.Context, dir string) (failed <-chan error, stop func(), err error) {
	ports, err := guest.ReadPorts(dir)
	if err != nil || len(ports) == 0 {
		return nil, func() {}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	input, to := io.Pipe()
	from, output := io.Pipe()
	r := newRelay(machine(dir), to, ports)
	var running sync.WaitGroup
	running.Add(1)
	go func() {
		defer running.Done()
		code, err := guest.Run(ctx, dir, guest.Command{Request: insideProgram, Stdin: input, Stdout: output, Stderr: os.Stderr})
		if err == nil {
			err = fmt.Errorf("the guest's ports: status %d", code)
		}
		input.CloseWithError(err)
		output.CloseWithError(err)
	}()
	stop = func() {
		cancel()
		from.Close()
		running.Wait()
	}
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- r.serve(from, began) }()
	select {
	case <-began:
		return ended, stop, nil
	case err = <-ended:
	case <-time.After(startPatience):
		err = errors.New("the guest's ports do not start")
	}
	stop()
	return nil, func() {}, err
}

// serve handles the guest's frames. It closes began when the ports are ready.
func (r *relay) serve(from io.Reader, began chan<- struct{}) error {
	defer func() {
		for _, p := range r.ports {
			p.end()
		}
	}()
	specs := make([]guest.Port, len(r.ports))
	for i, p := range r.ports {
		specs[i] = p.spec
	}
	text, err := json.Marshal(specs)
	if err != nil {
		return err
	}
	if err := r.out.send(frame{Kind: serve, Data: text}); err != nil {
		return err
	}
	in := bufio.NewReader(from)
	for isReady := false; ; {
		f, err := receive(in)
		switch {
		case err != nil:
			return err
		case f.Kind == ready && !isReady:
			isReady = true
			close(began)
		case int(f.Port) >= len(r.ports):
			return fmt.Errorf("%w: port %d", errFrame, f.Port)
		default:
			if err := r.ports[f.Port].hear(f); err != nil {
				return err
			}
		}
	}
}
