// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker/wire"
)

// Capture is a running capture of a port: the function fills the memory until
// Close, or until this process ends.
type Capture struct {
	Memory *os.File
	Start  wire.Capture // the layout of the memory

	conn   *net.UnixConn
	ended  chan struct{}
	reason string
	late   error // the broker has not confirmed the end in time
}

// Capture makes a function copy the packets of its port, and waits until a
// process has opened the port. link is the name of its link; "" if no other port
// of the broker has this name. snaplen is the bytes kept per packet; 0: the
// link's largest frame.
func (c *Client) Capture(ctx context.Context, link, function, port string, snaplen int) (*Capture, error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	k, err := c.capture(ctx, conn, captureParams{Link: link, Function: function, Port: port, Snaplen: snaplen})
	if err != nil {
		return nil, errors.Join(ctx.Err(), fmt.Errorf("broker: capture: %w", err), hangUp(conn))
	}
	go k.await()
	return k, nil
}

func (c *Client) capture(ctx context.Context, conn *net.UnixConn, p captureParams) (*Capture, error) {
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(conn).Encode(request{Method: "capture", Params: body}); err != nil {
		return nil, err
	}
	k := &Capture{conn: conn, ended: make(chan struct{})}
	if err := k.receive(); err != nil {
		return nil, err
	}
	if !stop() {
		return nil, errors.Join(ctx.Err(), k.Memory.Close())
	}
	return k, nil
}

// receive reads the answer, and the memory that comes with it.
func (k *Capture) receive() error {
	var line []byte
	memfd := -1
	for !bytes.HasSuffix(line, []byte{'\n'}) && len(line) < 64<<10 {
		buffer, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
		n, rn, _, _, err := k.conn.ReadMsgUnix(buffer, rights)
		if err == nil && n == 0 {
			err = errors.New("it closed the connection")
		}
		if err != nil {
			return err
		}
		line = append(line, buffer[:n]...)
		for _, fd := range rightsOf(rights[:rn]) {
			memfd = fd // the buffer has room for one
		}
	}
	if memfd >= 0 {
		k.Memory = os.NewFile(uintptr(memfd), "capture memory")
	}
	err := decodeResponse(line, &k.Start)
	if err == nil && memfd < 0 {
		err = errors.New("the reply came without memory")
	}
	if err != nil && k.Memory != nil {
		err = errors.Join(err, k.Memory.Close())
	}
	return err
}

func decodeResponse(line []byte, result any) error {
	var r response
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	if r.Error != "" {
		return errors.New(r.Error)
	}
	return json.Unmarshal(r.Result, result)
}

// await waits for the end of the capture.
func (k *Capture) await() {
	defer close(k.ended)
	var r response
	err := json.NewDecoder(lastLook{k.conn}).Decode(&r)
	if k.reason = r.Error; err != nil {
		k.reason = "the broker has ended"
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		k.late = errors.New("the broker does not respond: the port may still be captured")
	}
}

// Ended is closed when no more packets will come. Reason then says why.
func (k *Capture) Ended() <-chan struct{} { return k.ended }

// Reason is valid once Ended is closed.
func (k *Capture) Reason() string { return k.reason }

// Close ends the capture. The port can be captured again when it returns nil.
func (k *Capture) Close() error { return k.close(captureAnswer) }

func (k *Capture) close(within time.Duration) error {
	err := endRequest(k.conn, within)
	<-k.ended // the broker has stopped, and closed the connection; or it is late
	return errors.Join(err, k.late, k.conn.Close(), k.Memory.Close())
}

// hangUp ends a capture that may wait for its port, and closes the connection when the broker has.
func hangUp(conn *net.UnixConn) error {
	err := endRequest(conn, captureAnswer)
	_, _ = io.Copy(io.Discard, conn)
	return errors.Join(err, conn.Close())
}

// endRequest tells the broker that a capture is over. It has that long to hang up.
func endRequest(conn *net.UnixConn, within time.Duration) error {
	if err := conn.CloseWrite(); err != nil && !errors.Is(err, unix.ENOTCONN) { // the broker has closed it
		return err
	}
	return conn.SetReadDeadline(time.Now().Add(within))
}
