// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// TestBindKeepsRestrictions: each restriction is added to what is mounted there, not to a
// remount that would drop the others. In a user namespace the kernel refuses such a remount.
func TestBindKeepsRestrictions(t *testing.T) {
	testenv.Root(t)
	dir := t.TempDir()
	testenv.Must(t, host.MountScratch(dir, os.Geteuid())) // with noexec
	defer func() { testenv.Must(t, unix.Unmount(dir, 0)) }()
	mount, err := Bind(dir, "/inside", true)
	if want := []string{"rbind", "rnosuid", "rnodev", "rnoexec"}; err != nil || !slices.Equal(mount.Options, want) {
		t.Errorf("%v, %v; want %v", mount.Options, err, want)
	}
}
