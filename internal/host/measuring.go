// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// measuringPrefix starts the name of the abstract socket that announces a measuring
// process. The kernel removes the socket with the process.
const measuringPrefix = "@dray-measuring/"

// AnnounceMeasurement tells other processes in this network namespace that this one
// is measuring, until end is called.
func AnnounceMeasurement() (end func(), err error) {
	// A random suffix keeps ordinary users from taking the name first.
	l, err := net.Listen("unix", ownMeasurements()+strconv.FormatUint(rand.Uint64(), 36))
	if err != nil {
		return nil, fmt.Errorf("announce a measurement: %w", err)
	}
	go func() {
		for {
			c, err := l.Accept() // others connect to learn whose socket it is
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	return func() { l.Close() }, nil
}

// OtherMeasurements counts the other processes of root or of this process's user that
// have announced a measurement. Anybody can take such a name, but not their identity.
func OtherMeasurements() int {
	sockets, err := os.ReadFile("/proc/thread-self/net/unix")
	if err != nil {
		return 0 // unknown
	}
	own, others := []byte(ownMeasurements()), map[string]bool{}
	for _, line := range bytes.Split(sockets, []byte("\n")) {
		fields := bytes.Fields(line)
		if len(fields) == 0 {
			continue
		}
		name := fields[len(fields)-1]
		if bytes.HasPrefix(name, []byte(measuringPrefix)) && !bytes.HasPrefix(name, own) && !others[string(name)] {
			others[string(name)] = trustedListener(string(name))
		}
	}
	n := 0
	for _, trusted := range others {
		if trusted {
			n++
		}
	}
	return n
}

// trustedListener reports whether root or this process's user listens on an abstract
// socket.
func trustedListener(name string) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		return false
	}
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	return err == nil && (peer.Uid == 0 || int(peer.Uid) == os.Geteuid())
}

// ownMeasurements starts the names of this process's sockets.
func ownMeasurements() string { return measuringPrefix + strconv.Itoa(os.Getpid()) + "/" }
