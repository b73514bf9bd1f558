// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

// TestUnixSocket follows a socket from nothing to a connection and back.
func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	look := func(want SocketState) {
		t.Helper()
		got, err := HostNetns.UnixSocket(path)
		if got.Listening && got.Sockets == 0 {
			t.Error("it counts no socket")
		}
		got.Sockets = 0 // others come and go
		if err != nil || got != want {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
	}
	look(SocketState{})
	l, err := net.Listen("unixpacket", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	look(SocketState{Listening: true})
	client, err := net.Dial("unixpacket", path)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	look(SocketState{Listening: true, Connected: 1})
	server.Close()
	look(SocketState{Listening: true})
}

// TestManySocketsAreLookedAtSeldom: a function that opens sockets without end does not
// keep its watcher busy.
func TestManySocketsAreLookedAtSeldom(t *testing.T) {
	for sockets, want := range map[int]time.Duration{0: lookEvery, 10: lookEvery, 20_000: 21 * lookEvery, 200_000: 201 * lookEvery} {
		if got := (SocketState{Sockets: sockets}).Pause(); got != want {
			t.Errorf("%d sockets: %v, want %v", sockets, got, want)
		}
	}
}
