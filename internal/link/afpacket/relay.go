// SPDX-License-Identifier: Apache-2.0

package afpacket

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// readyLine is printed by the relay once it forwards frames.
const readyLine = "ready"

// nobody is the user and group that the relay runs as once its sockets are open.
const nobody = 65534

// RelayMain is the sub-command "relay": it forwards frames between a host
// interface and a port until ctx ends or one of them is deleted.
func RelayMain(ctx context.Context, args []string) error {
	var uplink, port struct{ netns, name string }
	flags := flag.NewFlagSet("relay", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error text is sufficient
	flags.StringVar(&uplink.name, "uplink", "", "host interface")
	flags.StringVar(&uplink.netns, "uplink-netns", "", "its network namespace")
	flags.StringVar(&port.name, "port", "", "the port's interface on the relay's side")
	flags.StringVar(&port.netns, "port-netns", "", "its network namespace")
	macText := flags.String("mac", "", "the port's MAC address")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	mac, err := net.ParseMAC(*macText)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	out, err := openSocket(host.Netns{Path: uplink.netns}, uplink.name, mac)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	defer out.close()
	in, err := openSocket(host.Netns{Path: port.netns}, port.name, nil)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	defer in.close()
	if err := dropPrivileges(); err != nil {
		return fmt.Errorf("relay: drop privileges: %w", err)
	}
	if _, err := fmt.Println(readyLine); err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	return pumpBoth(ctx, out, in)
}

// dropPrivileges drops all privileges: open sockets need none.
func dropPrivileges() error {
	if os.Geteuid() != 0 {
		return nil
	}
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setgid(nobody); err != nil {
		return err
	}
	return syscall.Setuid(nobody)
}

// pumpBoth relays in both directions until ctx ends or one direction fails.
func pumpBoth(ctx context.Context, a, b *socket) error {
	stop, err := newStop()
	if err != nil {
		return err
	}
	defer stop.close()
	done := make(chan error, 2)
	for _, pair := range [][2]*socket{{a, b}, {b, a}} {
		go func() { done <- pump(pair[0], pair[1], stop) }()
	}
	running := 2
	select {
	case <-ctx.Done():
	case err = <-done:
		running--
	}
	stop.signal()
	for range running {
		err = errors.Join(err, <-done)
	}
	fmt.Fprintf(os.Stderr, "relay: %s: %s; %s: %s\n", a.name, &a.counters, b.name, &b.counters)
	return err
}

// pump forwards frames from one socket to the other. It counts and drops
// frames that it cannot send; it ends only if an interface is deleted.
func pump(from, to *socket, stop *stopper) error {
	f := newFrame()
	for {
		n, err := from.receive(f)
		switch {
		case err == nil:
		case errors.Is(err, unix.EAGAIN):
			if stopped, err := stop.wait(from.fd, unix.POLLIN); stopped || err != nil {
				return err
			}
			continue
		case errors.Is(err, unix.ENETDOWN):
			if from.gone() {
				return fmt.Errorf("interface %s is gone", from.name)
			}
			continue // reported once; the interface may come up again
		default: // a frame that the virtio header cannot describe
			from.dropped.Add(1)
			continue
		}
		if n > f.capacity() {
			from.dropped.Add(1)
			continue
		}
		if stopped, err := forward(f.bytes(n), from, to, stop); stopped || err != nil {
			return err
		}
	}
}

// forward sends one frame, and waits while the interface's queue is full.
func forward(frame []byte, from, to *socket, stop *stopper) (stopped bool, err error) {
	for {
		_, err := unix.Write(to.fd, frame)
		switch {
		case err == nil:
			from.passed.Add(1)
			return false, nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			if stopped, err := stop.wait(to.fd, unix.POLLOUT); stopped || err != nil {
				return stopped, err
			}
		case errors.Is(err, unix.ENXIO) && to.gone():
			return false, fmt.Errorf("interface %s is gone", to.name)
		default: // too long, rejected by the qdisc, or the interface is down
			from.dropped.Add(1)
			return false, nil
		}
	}
}
