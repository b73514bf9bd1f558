// SPDX-License-Identifier: Apache-2.0

package guestports

import (
	"net"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/link/broker/wire"
)

// sendOn sends one message with descriptors, which the caller still owns. It does not
// block: a receiver that does not read gets no more messages.
func sendOn(conn *net.UnixConn, message []byte, fds ...int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Control(func(fd uintptr) {
		_, sent = unix.SendmsgN(int(fd), message, rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	})
	if err != nil {
		return err
	}
	return sent
}

// receiveOn reads one message with its descriptors, which become the caller's.
func receiveOn(conn *net.UnixConn, from wire.Sender) (wire.Message, []int, error) {
	buffer, control := make([]byte, wire.MaxMessage+1), make([]byte, unix.CmsgSpace(4*wire.MaxFDs))
	n, rights, _, _, err := conn.ReadMsgUnix(buffer, control)
	if err != nil {
		return wire.Message{}, nil, err
	}
	fds := descriptors(control[:rights])
	m, err := wire.Parse(buffer[:n], len(fds), from)
	if err != nil {
		closeAll(fds)
		return m, nil, err
	}
	return m, fds, nil
}

func descriptors(control []byte) []int {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	var all []int
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			all = append(all, fds...)
		}
	}
	for _, fd := range all {
		unix.CloseOnExec(fd)
	}
	return all
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
