// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/function/guest/wire"
)

// guestPath is the search path for programs in a virtual machine.
const guestPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// guestPatience bounds a short program in a virtual machine, which may be emulated.
const guestPatience = 30 * time.Second

// machine reports whether the endpoint is in a virtual machine.
func (e Endpoint) machine() bool { return e.Guest != "" }

// oneClock reports whether both ends' programs read one clock. A virtual machine
// has its own, so different machines' timestamps are not comparable.
func oneClock(from, to Endpoint) bool {
	return from.Guest == to.Guest && from.machineOf() == to.machineOf()
}

// inMachine is the host process that represents a program in the endpoint's
// virtual machine. The machine sees the host's programs at their paths.
func inMachine(at Endpoint, argv []string) (*exec.Cmd, error) {
	return guest.ClientCommand(at.Guest, wire.Request{
		Argv: argv, Env: append([]string{guestPath, "HOME=/", "LC_ALL=C"}, at.env()...), Dir: "/",
	})
}

// readInMachine reads files of the endpoint's virtual machine in turn; missing
// files count as empty.
func readInMachine(ctx context.Context, at Endpoint, paths ...string) ([]byte, error) {
	return brieflyInMachine(ctx, at, append([]string{"cat"}, paths...))
}

func removeInMachine(ctx context.Context, at Endpoint, path string) error {
	_, err := brieflyInMachine(ctx, at, []string{"rm", "-f", path})
	return err
}

// brieflyInMachine runs a short program and returns its output.
func brieflyInMachine(ctx context.Context, at Endpoint, argv []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, guestPatience)
	defer cancel()
	var out bounded
	_, err := guest.Run(ctx, at.Guest, guest.Command{
		Request: wire.Request{Argv: argv, Env: []string{guestPath}, Dir: "/"}, Stdout: &out,
	})
	if err != nil {
		return nil, fmt.Errorf("%s in the machine of %s: %w", argv[0], at.Name, err)
	}
	if out.over {
		return nil, fmt.Errorf("%s in the machine of %s prints over %d bytes", argv[0], at.Name, maxLogBytes)
	}
	return out.buf.Bytes(), nil
}

// bounded accepts at most the longest log: the machine is not trusted.
type bounded struct {
	buf  bytes.Buffer
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > maxLogBytes {
		b.over = true
		return 0, io.ErrShortBuffer
	}
	return b.buf.Write(p)
}

// listedIn reads a virtual machine's socket tables. If it cannot be read, it has
// no such socket yet: the wait for the socket has its own limit.
func (s socket) listedIn(at Endpoint) bool {
	table, err := readInMachine(context.Background(), at, "/proc/net/"+s.proto, "/proc/net/"+s.proto+"6")
	return err == nil && s.in(bytes.NewReader(table))
}
