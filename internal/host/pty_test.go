// SPDX-License-Identifier: Apache-2.0

package host

import (
	"io"
	"testing"
)

// TestPassKeys: Ctrl-C is a byte like any other, and no end of a line is waited for.
func TestPassKeys(t *testing.T) {
	pty, err := OpenPty(80, 24)
	must(t, err)
	defer pty.Master.Close()
	defer pty.Slave.Close()
	must(t, pty.PassKeys())
	const keys = "\x03x\r"
	_, err = pty.Master.WriteString(keys)
	must(t, err)
	got := make([]byte, len(keys))
	if _, err := io.ReadFull(pty.Slave, got); err != nil || string(got) != keys {
		t.Errorf("the program reads %q, %v", got, err)
	}
}
