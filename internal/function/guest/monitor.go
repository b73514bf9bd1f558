// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// monitor is a connection to QEMU's monitor (QMP), which serves one at a time.
type monitor struct {
	conn  io.ReadWriter
	in    *json.Decoder
	close func()
}

// openMonitor connects to the monitor of the guest in dir. The connection closes when ctx
// ends.
func openMonitor(ctx context.Context, dir string) (*monitor, error) {
	conn, err := connect(ctx, dir, fileQMP)
	if err != nil {
		return nil, err
	}
	stop := closeWith(ctx, conn)
	return newMonitor(conn, func() {
		stop()
		conn.Close()
	})
}

// newMonitor greets QEMU. It calls close if that fails.
func newMonitor(conn io.ReadWriter, close func()) (*monitor, error) {
	m := &monitor{conn: conn, in: json.NewDecoder(bufio.NewReader(conn)), close: close}
	if err := m.execute("qmp_capabilities", nil, nil); err != nil {
		close()
		return nil, err
	}
	return m, nil
}

// execute runs a command; result takes its answer unless it is nil.
func (m *monitor) execute(command string, arguments, result any) error {
	return m.exchange(command, arguments, result, m.conn.Write)
}

// executeWith is execute for a command that brings a file.
func (m *monitor) executeWith(file int, command string, result any) error {
	conn, ok := m.conn.(*net.UnixConn)
	if !ok {
		return errors.New("QEMU: no file can be sent")
	}
	return m.exchange(command, nil, result, func(text []byte) (int, error) {
		n, _, err := conn.WriteMsgUnix(text, unix.UnixRights(file), nil)
		return n, err
	})
}

func (m *monitor) exchange(command string, arguments, result any, write func([]byte) (int, error)) error {
	message := map[string]any{"execute": command}
	if arguments != nil {
		message["arguments"] = arguments
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if _, err := write(text); err != nil {
		return fmt.Errorf("QEMU: %s: %w", command, err)
	}
	answer, err := qmpReturn(m.in)
	if err != nil {
		return fmt.Errorf("QEMU: %s: %w", command, err)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(answer, result); err != nil {
		return fmt.Errorf("QEMU: %s: %w", command, err)
	}
	return nil
}

// qmpReturn reads up to a command's answer, skipping greeting and events.
func qmpReturn(in *json.Decoder) (json.RawMessage, error) {
	for {
		var message struct {
			Return json.RawMessage `json:"return"`
			Error  *struct {
				Text string `json:"desc"`
			} `json:"error"`
		}
		if err := in.Decode(&message); err != nil {
			return nil, err
		}
		if message.Error != nil {
			return nil, errors.New(message.Error.Text)
		}
		if message.Return != nil {
			return message.Return, nil
		}
	}
}
