// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/spec/chain"
)

// request is one call. Exactly one of its fields is set.
type request struct {
	Info    bool            `json:"info,omitempty"`
	List    bool            `json:"list,omitempty"`
	Apply   *applyRequest   `json:"apply,omitempty"`
	Sockets *socketsRequest `json:"sockets,omitempty"`
	// Measured asks for what was measured at a port.
	Measured *measuredRequest `json:"measured,omitempty"`
}

type applyRequest struct {
	Halves []Half `json:"halves"`
	Prune  bool   `json:"prune,omitempty"` // remove all others
}

type socketsRequest struct {
	Half   string `json:"half"`
	Device string `json:"device"`
	Queues int    `json:"queues"`
}

type measuredRequest struct {
	Half  string    `json:"half"`
	MAC   chain.MAC `json:"mac"` // of the port
	Epoch uint64    `json:"epoch"`
	After uint64    `json:"after"` // number of an interval of that epoch
}

// response is the answer. Packet sockets come with it, one for each queue.
type response struct {
	Error string `json:"error,omitempty"`
	Info  *Info  `json:"info,omitempty"`
	Made  []Made `json:"made,omitempty"`

	Measured *Measured `json:"measured,omitempty"`
}

const (
	callTimeout = 10 * time.Second
	maxMessage  = 1 << 20 // bytes
	maxFiles    = 16      // descriptors in one message
)

// send writes a value as JSON, and descriptors with its first bytes.
func send(c *net.UnixConn, v any, fds ...int) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(text) > maxMessage {
		return fmt.Errorf("a message of %d bytes: at most %d", len(text), maxMessage)
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	text = append(text, '\n')
	n, _, err := c.WriteMsgUnix(text, rights, nil)
	if err == nil && n < len(text) {
		_, err = c.Write(text[n:])
	}
	return err
}

// receive reads what send wrote. The caller closes the files, also after an error.
func receive(c *net.UnixConn, v any) (files []*os.File, err error) {
	var text []byte
	buffer, control := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4*maxFiles))
	for len(text) == 0 || text[len(text)-1] != '\n' {
		n, oob, flags, _, err := c.ReadMsgUnix(buffer, control)
		got, parseErr := rights(control[:oob])
		files = append(files, got...)
		switch {
		case err != nil:
			return files, err
		case n == 0:
			return files, io.ErrUnexpectedEOF
		case parseErr != nil:
			return files, parseErr
		case flags&unix.MSG_CTRUNC != 0:
			return files, errors.New("more descriptors than a message may have")
		case len(text)+n > maxMessage+1:
			return files, errors.New("a message is too long")
		}
		text = append(text, buffer[:n]...)
	}
	return files, json.Unmarshal(text, v)
}

// rights are the descriptors in control data.
func rights(control []byte) (files []*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(control)
	for i := range messages {
		fds, parseErr := unix.ParseUnixRights(&messages[i])
		if parseErr != nil {
			err = parseErr
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, err
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
