// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"strings"
)

// SocketState is a network namespace's view of a unix socket's path.
type SocketState struct {
	Listening bool
	// Connected counts the sockets of this namespace connected to it, whatever the
	// listener's namespace.
	Connected int
	// Sockets is how many unix sockets the namespace has: each took time to look at.
	Sockets int
}

// UnixSocket looks for sockets of the network namespace with the path, spelled as
// at bind.
func (n Netns) UnixSocket(path string) (SocketState, error) {
	var s SocketState
	err := n.Do(func() error {
		text, err := os.ReadFile("/proc/thread-self/net/unix") // of the thread that Do moved
		if err == nil {
			s = parseUnixSockets(string(text), path)
		}
		return err
	})
	return s, err
}

// parseUnixSockets reads the table of proc(5): an accepted socket has the
// listener's path. Flags and states are from net/unix/af_unix.c and linux/net.h.
func parseUnixSockets(table, path string) SocketState {
	const (
		flags, state, name = 3, 5, 7 // columns
		accepts            = "00010000"
		connected          = "03"
	)
	var s SocketState
	for _, line := range strings.Split(table, "\n") {
		s.Sockets++
		f := strings.Fields(line)
		if len(f) != name+1 || f[name] != path {
			continue
		}
		s.Listening = s.Listening || f[flags] == accepts
		if f[state] == connected {
			s.Connected++
		}
	}
	return s
}
