// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// MakeStateDir makes a state directory if it is missing. It refuses one as
// CheckStateDir does.
func MakeStateDir(dir string) error {
	if err := MakeDirs(dir, 0o711); err != nil {
		return fmt.Errorf("state directory: %w (run as root, or set DRAY_STATE)", err)
	}
	return CheckStateDir(dir)
}

// CheckStateDir rejects a directory that other users can write to: whatever its
// journals name is removed, or set.
func CheckStateDir(dir string) error {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return fmt.Errorf("state directory %s: %w", dir, err)
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return fmt.Errorf("state directory %s: another user owns it or may write to it; chown and chmod go-w it, or set DRAY_STATE", dir)
	}
	return nil
}
