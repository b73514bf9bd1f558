// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"
	"time"
)

func TestHeldMemoryOfBothVersions(t *testing.T) {
	for text, want := range map[string]uint64{
		"anon 100\nfile 5000\nkernel 7\nshmem 30\n":                                  130,
		"cache 9\nrss 1\nshmem 2\ntotal_cache 5000\ntotal_rss 100\ntotal_shmem 30\n": 130,
		"": 0,
	} {
		if got := heldMemory([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// TestHeldMemoryIsOfTheWholeGroup: a child of the group holds 16 MiB.
func TestHeldMemoryIsOfTheWholeGroup(t *testing.T) {
	c := testCgroup(t)
	create(t, c, Limits{Memory: 1 << 30})
	child := c.Child("tools")
	create(t, child, Limits{Memory: 1 << 30})
	if got := c.HeldMemory(); got > 1<<20 {
		t.Errorf("an empty group holds %d bytes", got)
	}
	cmd := start(t, Place{Netns: HostNetns, Cgroup: child}, "x=$(head -c 16777216 /dev/zero | tr '\\0' x); sleep 100")
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	got := uint64(0)
	for end := time.Now().Add(30 * time.Second); got < 16<<20 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		got = c.HeldMemory()
	}
	if got < 16<<20 {
		t.Errorf("the group holds %d bytes", got)
	}
}
