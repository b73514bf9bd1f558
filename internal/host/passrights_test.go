// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRefusesRights attaches a descriptor to a message for a socket that refuses it.
func TestRefusesRights(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	_ = unix.SetsockoptInt(pair[1], unix.SOL_SOCKET, soPassRights, 0)
	err = unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(int(os.Stdin.Fd())), nil, unix.MSG_DONTWAIT)
	if refused := err != nil; refused != RefusesRights() {
		t.Errorf("a descriptor is refused: %t (%v); RefusesRights: %t", refused, err, RefusesRights())
	}
}
