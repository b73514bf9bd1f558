// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/guest/wire"
)

// serve answers the host on every channel until the guest ends.
func serve(channels int) error {
	if err := os.MkdirAll(groupRoot, 0o755); err != nil {
		return err
	}
	ports, err := awaitPorts("/sys/class/virtio-ports", "/dev", channels)
	if err != nil {
		return err
	}
	wake := watchPorts()
	go reapOrphans()
	for _, path := range ports {
		go func() {
			if err := servePort(path, wake); err != nil {
				fmt.Fprintf(os.Stderr, "dray-guest: channel %s: %v\n", path, err)
			}
		}()
	}
	fmt.Println("dray-guest: ready")
	select {}
}

// portsTimeout bounds how long the host may take to name the channels, which
// follows the driver's probe of the device.
const portsTimeout = time.Minute

// awaitPorts waits for this many channels.
func awaitPorts(class, dev string, channels int) ([]string, error) {
	for end := time.Now().Add(portsTimeout); ; time.Sleep(10 * time.Millisecond) {
		ports, err := findPorts(class, dev)
		if err == nil && len(ports) >= channels {
			return ports, nil
		}
		if time.Now().After(end) {
			return nil, errors.Join(err, fmt.Errorf("the machine has %d channels to the host, not %d", len(ports), channels))
		}
	}
}

// findPorts lists the devices of the agent's channels.
func findPorts(class, dev string) ([]string, error) {
	entries, err := os.ReadDir(class)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range entries {
		name, err := os.ReadFile(filepath.Join(class, e.Name(), "name"))
		if err == nil && strings.HasPrefix(string(name), PortPrefix) {
			list = append(list, filepath.Join(dev, e.Name()))
		}
	}
	return list, nil
}

// bell wakes all waiters.
type bell struct {
	mu sync.Mutex
	c  chan struct{}
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.c)
	b.c = make(chan struct{})
}

func (b *bell) wait(longest time.Duration) {
	b.mu.Lock()
	c := b.c
	b.mu.Unlock()
	select {
	case <-c:
	case <-time.After(longest):
	}
}

// watchPorts rings when the host connects to a channel: the kernel sends SIGIO,
// the only event of a channel without a host.
func watchPorts() *bell {
	b := &bell{c: make(chan struct{})}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGIO)
	go func() {
		for range signals {
			b.ring()
		}
	}()
	return b
}

// idlePoll is how often a channel without a host is checked, in case a signal is
// lost.
const idlePoll = time.Second

// servePort serves one client after another.
func servePort(path string, wake *bell) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := notify(f); err != nil {
		return err
	}
	in := wire.NewReader(bufio.NewReaderSize(hostReader{f}, 8<<10))
	s := &session{port: f, start: startProgram}
	for {
		kind, payload, err := in.Next()
		switch {
		case err == nil:
			err = s.frame(kind, payload)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			s.end()
			wake.wait(idlePoll)
			err = nil
		}
		if errors.Is(err, wire.ErrMalformed) {
			// The next client's preamble resynchronises the stream.
			fmt.Fprintf(os.Stderr, "dray-guest: channel %s: %v\n", path, err)
			s.end()
		} else if err != nil {
			s.end()
			return err
		}
	}
}

// notify requests SIGIO when the host connects, disconnects or sends.
func notify(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		if _, failed = unix.FcntlInt(fd, unix.F_SETOWN, os.Getpid()); failed != nil {
			return
		}
		var flags int
		if flags, failed = unix.FcntlInt(fd, unix.F_GETFL, 0); failed == nil {
			_, failed = unix.FcntlInt(fd, unix.F_SETFL, flags|unix.O_ASYNC)
		}
	})
	return errors.Join(err, failed)
}

// hostReader reads a channel; without a host it returns EOF for now.
type hostReader struct{ f *os.File }

func (r hostReader) Read(p []byte) (int, error) {
	n, err := r.f.Read(p)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ENODEV) {
		err = io.EOF
	}
	return n, err
}
