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
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// pin binds each virtual CPU's thread to its host CPU.
func (c Config) pin(ctx context.Context) error {
	if len(c.CPUs) == 0 {
		return nil
	}
	conn, err := connect(ctx, c.Dir, fileQMP)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer closeWith(ctx, conn)()
	threads, err := vcpuThreads(conn)
	if err != nil {
		return err
	}
	if len(threads) != c.vcpus() {
		return fmt.Errorf("QEMU has %d threads for %d virtual CPUs", len(threads), c.vcpus())
	}
	for i, tid := range threads {
		var set unix.CPUSet
		cpu := c.CPUs[i%len(c.CPUs)]
		set.Set(cpu)
		if err := unix.SchedSetaffinity(tid, &set); err != nil {
			return fmt.Errorf("pin virtual CPU %d to CPU %d: %w", i, cpu, err)
		}
	}
	return nil
}

// vcpuThreads asks QEMU for the threads of the virtual CPUs, in order.
func vcpuThreads(conn io.ReadWriter) ([]int, error) {
	out := json.NewEncoder(conn)
	in := json.NewDecoder(bufio.NewReader(conn))
	var threads []int
	for _, command := range []string{"qmp_capabilities", "query-cpus-fast"} {
		if err := out.Encode(map[string]string{"execute": command}); err != nil {
			return nil, err
		}
		result, err := qmpReturn(in)
		if err != nil {
			return nil, fmt.Errorf("QEMU: %s: %w", command, err)
		}
		if command != "query-cpus-fast" {
			continue
		}
		var cpus []struct {
			Index  int `json:"cpu-index"`
			Thread int `json:"thread-id"`
		}
		if err := json.Unmarshal(result, &cpus); err != nil {
			return nil, fmt.Errorf("QEMU: %s: %w", command, err)
		}
		threads = make([]int, len(cpus))
		for _, cpu := range cpus {
			if cpu.Index < 0 || cpu.Index >= len(cpus) {
				return nil, fmt.Errorf("QEMU: %d virtual CPUs, one of them number %d", len(cpus), cpu.Index)
			}
			threads[cpu.Index] = cpu.Thread
		}
	}
	return threads, nil
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

// maxSocketPath is a socket's longest path: sun_path without NUL (unix(7)).
const maxSocketPath = 107

// connect connects to a socket in a guest's directory.
func connect(ctx context.Context, dir, name string) (net.Conn, error) {
	path := filepath.Join(dir, name)
	if len(path) > maxSocketPath {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("guest's directory %s: %w", dir, err)
		}
		defer unix.Close(fd)
		path = fmt.Sprintf("/proc/self/fd/%d/%s", fd, name)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("guest in %s: %w", dir, errors.New(strings.ReplaceAll(err.Error(), path, name)))
	}
	return conn, nil
}

// closeWith closes the connection when ctx ends; stop ends the watching.
func closeWith(ctx context.Context, conn net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { conn.Close() })
}
