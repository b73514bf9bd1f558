// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// TestCheckSpace names the file system, and why nothing can be written there.
func TestCheckSpace(t *testing.T) {
	testenv.Root(t)
	dir := t.TempDir()
	testenv.Must(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1m"))
	t.Cleanup(func() { testenv.Must(t, unix.Unmount(dir, 0)) })
	if err := host.CheckSpace(dir, 64<<10); err != nil {
		t.Error(err)
	}
	if err := host.CheckSpace(dir, 2<<20); !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "tmpfs at "+dir+" has 1Mi left") {
		t.Errorf("it is too small: %v", err)
	}
	testenv.Must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	if err := host.CheckSpace(dir, 64<<10); !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), "is read-only") {
		t.Errorf("it is read-only: %v", err)
	}
}
