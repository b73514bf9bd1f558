// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"context"
	"errors"

	"github.com/drayage/dray/internal/link/broker"
)

// Native is a capture of a port that libdray opens: the function copies its packets.
type Native struct {
	*Memory
	capture *broker.Capture
}

// OpenNative starts a capture, and waits until a process has opened the port. link is the
// broker's name of the port's link; "" if no other port has this name. snaplen is the
// bytes kept of each packet; 0: as many as the largest has.
func OpenNative(ctx context.Context, client *broker.Client, link, function, port string, snaplen int) (*Native, error) {
	k, err := client.Capture(ctx, link, function, port, snaplen)
	if err != nil {
		return nil, err
	}
	m, err := OpenMemory(k.Memory, k.Start, k.Ended())
	if err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return &Native{m, k}, nil
}

// Snaplen is how many bytes of a packet are kept.
func (n *Native) Snaplen() int { return int(n.capture.Start.Snaplen) }

// Reason is why it ended by itself; "" if it did not.
func (n *Native) Reason() string {
	select {
	case <-n.capture.Ended():
		return n.capture.Reason()
	default:
		return ""
	}
}

// Close ends the capture.
func (n *Native) Close() error { return errors.Join(n.capture.Close(), n.Memory.Close()) }
