// SPDX-License-Identifier: Apache-2.0

package guestports

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/link/broker/wire"
)

// memoryBAR is the resource of an ivshmem-plain device that is its memory. The cached
// mapping of it: one that combines writes would not keep their order, on which the rings
// rely.
const memoryBAR = "resource2"

// devicePatience bounds the time until the guest's kernel shows a plugged device. The
// broker waits 5 s for ACTIVE. Tests have less time.
var devicePatience = 4 * time.Second

// deviceMemory is the path of the memory in a window; "" if it is empty.
func deviceMemory(window int) string {
	found, _ := filepath.Glob("/sys/bus/pci/devices/" + guest.WindowAddress(window) + "/0000:*/" + memoryBAR) // the pattern is valid
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// bus has the windows, as the guest sees them.
type bus interface {
	// open opens the memory in a window.
	open(window int, size uint64) (fd int, err error)
	// left reports whether a window has memory, and no program maps it.
	left(window int) bool
}

// pci is the bus of the guest's kernel.
type pci struct{}

func (pci) left(window int) bool {
	path := deviceMemory(window)
	return path != "" && !mapped(filepath.Base(filepath.Dir(path)))
}

// open waits until the kernel shows the device.
func (pci) open(window int, size uint64) (int, error) {
	path := deviceMemory(window)
	for begin := time.Now(); path == ""; path = deviceMemory(window) {
		if time.Since(begin) > devicePatience {
			return -1, fmt.Errorf("no device appears at %s", guest.WindowAddress(window))
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "enable"), []byte("1"), 0); err != nil {
		return -1, err
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && uint64(st.Size) != size {
		err = fmt.Errorf("%s has %d bytes, not %d", path, st.Size, size)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// offered makes what belongs to an OFFER: the device, and the program's ends of bells.
func (p *insidePort) offered(window int, generation uint32, o *wire.Offer) (fds []int, err error) {
	device, err := p.bus.open(window, o.Geometry.Size)
	if err != nil {
		fmt.Fprintf(os.Stderr, "dray-guest ports: port %s: %v\n", p.spec.Name, err)
		return nil, err
	}
	fds = []int{device}
	var own []int
	for range o.Queues {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			closeAll(own)
			closeAll(fds)
			return nil, err
		}
		fds, own = append(fds, pair[0]), append(own, pair[1])
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.generations[generation] = newBells(own, func(queue int) {
		_ = p.out.send(frame{Kind: ring, Port: p.index, Queue: uint8(queue), Number: generation}) // a broken stream shows when it is read
	}, func() { p.over(generation) })
	return fds, nil
}

// over tells the host that a generation has ended.
func (p *insidePort) over(generation uint32) {
	go func() {
		p.mu.Lock()
		b := p.generations[generation]
		delete(p.generations, generation)
		p.mu.Unlock()
		if b != nil {
			b.close()
		}
		_ = p.out.send(frame{Kind: hangUp, Port: p.index, Number: generation}) // a broken stream shows when it is read
	}()
}

// look reports telemetry, and memory that no program maps.
func (p *insidePort) look() {
	p.mu.Lock()
	if p.lock != nil {
		p.sendReport()
	}
	serves := p.lock != nil
	p.mu.Unlock()
	if !serves {
		return
	}
	for _, window := range p.spec.Windows {
		if p.bus.left(window) {
			// The host keeps what a generation has that is not over.
			_ = p.out.send(frame{Kind: free, Port: p.index, Window: uint8(window)}) // a broken stream shows when it is read
		}
	}
}

// mapped reports whether any program maps the memory of a device.
func mapped(address string) bool {
	tables, _ := filepath.Glob("/proc/[0-9]*/maps") // the pattern is valid
	name := []byte("/" + address + "/" + memoryBAR)
	for _, table := range tables {
		if text, err := os.ReadFile(table); err == nil && bytes.Contains(text, name) { // otherwise it has just ended
			return true
		}
	}
	return false
}
