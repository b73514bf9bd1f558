// SPDX-License-Identifier: Apache-2.0

package guestports

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/function/runtime"
)

// lookEvery is how often the relay in the guest reports telemetry, and looks for memory
// that no program maps any more.
const lookEvery = 250 * time.Millisecond

// InsideMain is `dray-guest ports`, the half in the guest. It returns the exit status.
func InsideMain() int {
	if err := inside(os.Stdin, os.Stdout, runtime.PortsInside, pci{}); err != nil {
		fmt.Fprintf(os.Stderr, "dray-guest ports: %v\n", err)
		return 1
	}
	return 0
}

// inside serves ports in a directory until its input ends.
func inside(input io.Reader, output io.Writer, dir string, b bus) error {
	in, out := bufio.NewReader(input), &stream{out: output}
	first, err := receive(in)
	if err != nil {
		return err
	}
	var specs []guest.Port
	if err := json.Unmarshal(first.Data, &specs); err != nil || first.Kind != serve {
		return fmt.Errorf("%w: kind %d: %w", errFrame, first.Kind, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	ports := make([]*insidePort, len(specs))
	for i, spec := range specs {
		ports[i] = newInsidePort(out, b, uint8(i), spec)
		if err := ports[i].take(dir); err != nil {
			return err
		}
	}
	if err := out.send(frame{Kind: ready}); err != nil {
		return err
	}
	go func() {
		for range time.Tick(lookEvery) {
			for _, p := range ports {
				p.look()
			}
		}
	}()
	for {
		f, err := receive(in)
		if err != nil {
			return err
		}
		if int(f.Port) >= len(ports) {
			return fmt.Errorf("%w: port %d", errFrame, f.Port)
		}
		ports[f.Port].hear(f)
	}
}

// take gives the port its socket. If another relay of this guest serves the port, that
// happens when the other has ended.
func (p *insidePort) take(dir string) error {
	path := filepath.Join(dir, p.spec.Name)
	lock, err := os.OpenFile(filepath.Join(dir, "."+p.spec.Name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		return p.bind(path, lock)
	}
	go func() {
		for unix.Flock(int(lock.Fd()), unix.LOCK_EX) == unix.EINTR {
		}
		if err := p.bind(path, lock); err != nil {
			fmt.Fprintf(os.Stderr, "dray-guest ports: %v\n", err)
			os.Exit(1)
		}
	}()
	return nil
}
