// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"time"
)

const (
	lookEvery = 100 * time.Millisecond
	// lostFor is how long a connection must be gone: a closing socket is in neither
	// state.
	lostFor = 3 * lookEvery
	// quickSockets is how many sockets take next to no time to look at. A namespace can
	// have many times more, which would keep this process busy.
	quickSockets = 1000
)

// Pause is how long to wait after a look at a namespace.
func (s SocketState) Pause() time.Duration {
	return lookEvery * time.Duration(1+s.Sockets/quickSockets)
}

// Connection is one that a program makes once, when it starts.
type Connection struct {
	// Netns is the program's namespace: the kernel counts both sides of a connection in the
	// connecting namespace.
	Netns Netns
	Path  string // of the listener's socket, spelled as at bind
}

// WatchConnections returns the index of a connection that does not exist, and never will.
// early says that it was not made within grace; otherwise it is lost. The index is negative
// when ctx ends.
func WatchConnections(ctx context.Context, all []Connection, grace time.Duration) (index int, early bool) {
	started, was, lost := time.Now(), make([]bool, len(all)), make([]time.Time, len(all))
	need := map[string]int{} // listeners in different containers may have the same path
	for _, c := range all {
		need[c.Path]++
	}
	for next := lookEvery; Sleep(ctx, next) == nil; {
		next = lookEvery
		for i, c := range all {
			s, err := c.Netns.UnixSocket(c.Path)
			next = max(next, s.Pause())
			switch {
			case err != nil:
				continue // it says nothing of the connection: retry
			case s.Connected >= need[c.Path]:
				was[i], lost[i] = true, time.Time{}
			case !was[i] && time.Since(started) > grace:
				return i, true
			case was[i] && lost[i].IsZero():
				lost[i] = time.Now()
			case was[i] && time.Since(lost[i]) > lostFor:
				return i, false
			}
		}
	}
	return -1, false
}
