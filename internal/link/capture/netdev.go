// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// passAtMost bounds one Read from an interface.
const passAtMost = 4096

// Netdev captures at an interface.
type Netdev struct {
	tap     *host.PacketTap
	buf     []byte
	snaplen int
	dropped uint64
	reason  string
}

// OpenNetdev captures at an interface of a network namespace.
func OpenNetdev(n host.Netns, name string, snaplen int) (*Netdev, error) {
	tap, err := host.OpenPacketTap(n, name)
	if err != nil {
		return nil, err
	}
	return &Netdev{tap: tap, buf: make([]byte, snaplen+64), snaplen: snaplen}, nil
}

// Close ends it.
func (d *Netdev) Close() error { return d.tap.Close() }

// Read hands over what the kernel has kept, up to some thousand packets.
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

// Counts says how many packets the kernel had no room for.
func (d *Netdev) Counts() Counts {
	if n, err := d.tap.Dropped(); err == nil {
		d.dropped = n
	}
	return Counts{Dropped: d.dropped}
}
