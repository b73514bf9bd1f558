// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// passAtMost bounds the packets per Read from an interface.
const passAtMost = 4096

// Netdev captures on an interface.
type Netdev struct {
	tap     *host.PacketTap
	buf     []byte
	snaplen int
	dropped uint64
	reason  string
}

// OpenNetdev captures on an interface of a network namespace what a classic BPF program
// accepts; without one, everything.
func OpenNetdev(n host.Netns, name string, snaplen int, filter []unix.SockFilter) (*Netdev, error) {
	tap, err := host.OpenPacketTap(n, name, filter)
	if err != nil {
		return nil, err
	}
	return &Netdev{tap: tap, buf: make([]byte, snaplen+64), snaplen: snaplen}, nil
}

// Close ends the capture.
func (d *Netdev) Close() error { return d.tap.Close() }

// Read passes on the packets that the kernel has queued, at most passAtMost.
func (d *Netdev) Read(take func(Packet) error) error {
	for range passAtMost {
		p, ok, err := d.tap.Read(d.buf)
		if errors.Is(err, unix.ENETDOWN) {
			d.reason = "the interface is down, or gone"
			return ErrEnded
		}
		if err != nil || !ok {
			return err
		}
		if err := take(Packet{Time: p.Time, Length: p.Length, Data: d.buf[:min(p.Kept, d.snaplen)], Sent: p.Sent}); err != nil {
			return err
		}
	}
	return nil
}

// Reason is why the source has ended; "" if it has not.
func (d *Netdev) Reason() string { return d.reason }

// Wait waits for a packet.
func (d *Netdev) Wait(t time.Duration) error { return d.tap.Wait(t) }

// Counts reports how many packets the kernel dropped for lack of room.
func (d *Netdev) Counts() Counts {
	if n, err := d.tap.Dropped(); err == nil {
		d.dropped = n
	}
	return Counts{Dropped: d.dropped}
}
