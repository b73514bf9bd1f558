// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"net"
	"os"
)

// ListenFor makes a socket with the properties of a port's, for something else that the
// broker's process serves: only one user can connect, and it replaces the socket of an
// earlier process. remove removes its file.
func ListenFor(path string, owner int) (l *net.UnixListener, remove func() error, err error) {
	fd, at, err := listen(path, owner)
	if err != nil {
		return nil, nil, err
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close() // the listener has a copy
	general, err := net.FileListener(file)
	if err != nil {
		return nil, nil, errors.Join(err, at.unlink())
	}
	l = general.(*net.UnixListener)
	l.SetUnlinkOnClose(false)
	return l, at.unlink, nil
}
