// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A share is the cgroup's part of the largest weight; the cgroups above it have all of it
// for as long as they hold a share.
func TestCgroupShare(t *testing.T) {
	chain := testCgroup(t)
	create(t, chain, Limits{})
	a, b, plain := chain.Child("a"), chain.Child("b"), chain.Child("plain")
	create(t, plain, Limits{})
	var none *Unsupported
	usual, largest, err := chain.CPUWeight()
	if errors.As(err, &none) {
		t.Skip(err)
	}
	must(t, err)
	create(t, a, Limits{Share: 0.6})
	create(t, b, Limits{Share: 0.3})
	for _, want := range []struct {
		of     Cgroup
		weight int
	}{{a, int(math.Round(0.6 * float64(largest)))}, {b, int(math.Round(0.3 * float64(largest)))}, {plain, usual}, {chain, largest}, {Cgroup{Path: ownPrefix}, largest}} {
		if got, _, err := want.of.CPUWeight(); err != nil || got != want.weight {
			t.Errorf("%s has the weight %d of %d, error %v; want %d", want.of.Path, got, largest, err, want.weight)
		}
	}
	for _, c := range []struct {
		gone Cgroup
		left int
	}{{a, largest}, {b, usual}} {
		must(t, removeCgroup(context.Background(), c.gone.Path))
		if got, _, err := chain.CPUWeight(); err != nil || got != c.left {
			t.Errorf("without %s, the cgroup above has the weight %d, error %v; want %d", c.gone.Path, got, err, c.left)
		}
	}
}

// ownHierarchiesLock replaces the host's lock of hierarchies during a test.
func ownHierarchiesLock(t *testing.T) {
	before := hierarchiesLock
	hierarchiesLock = filepath.Join(t.TempDir(), "lock")
	t.Cleanup(func() { hierarchiesLock = before })
}

// plainWeights is a v2 hierarchy with the cpu controller, made of plain files: the cgroup
// /dray/c/a and those above it.
func plainWeights(t *testing.T) []hierarchy {
	mount := t.TempDir()
	for _, dir := range []string{"dray/c/a", "dray/c", "dray"} {
		must(t, os.MkdirAll(filepath.Join(mount, dir), 0o755))
		must(t, os.WriteFile(filepath.Join(mount, dir, "cpu.weight"), []byte("100\n"), 0o644))
	}
	return []hierarchy{{mount: mount, v2: true, controllers: []string{"cpu", "memory"}}}
}

// wantWaits expects f to wait until release.
func wantWaits(t *testing.T, what string, release func(), f func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		t.Errorf("%s while another dray changes weights (%v)", what, err)
		release()
	case <-time.After(100 * time.Millisecond):
		release()
		must(t, <-done)
	}
}

// A share is not given while another `dray` makes a cgroup or gives weights back.
func TestCgroupShareIsGivenAlone(t *testing.T) {
	c := testCgroup(t)
	create(t, c, Limits{})
	if _, _, err := c.CPUWeight(); errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	release, err := lockHierarchies(unix.LOCK_SH)
	must(t, err)
	wantWaits(t, "a share was given", release, func() error { return c.Child("a").Create(Limits{Share: 0.5}) })
}

// Weights are not given back while another `dray` gives a share: then they stay.
func TestCgroupWeightsAreGivenBackAlone(t *testing.T) {
	ownHierarchiesLock(t)
	hs := plainWeights(t)
	weight := func(dir string) string { return filepath.Join(hs[0].mount, dir, "cpu.weight") }
	must(t, os.WriteFile(weight("dray/c"), []byte("10000"), 0o644))
	release, err := holdHierarchies("", true)
	must(t, err)
	wantWaits(t, "a weight was given back", func() {
		must(t, os.WriteFile(weight("dray/c/a"), []byte("4000"), 0o644))
		release()
	}, func() error { return lighten("/dray/c/b", hs) })
	if got, err := os.ReadFile(weight("dray/c")); err != nil || string(got) != "10000" {
		t.Errorf("the cgroup above a share has the weight %q (%v)", got, err)
	}
}

// On v2 a share is of another largest weight.
func TestCgroupShareOnV2(t *testing.T) {
	ownHierarchiesLock(t)
	hs := plainWeights(t)
	mount := hs[0].mount
	want := func(a, parents string) {
		t.Helper()
		for dir, weight := range map[string]string{"dray/c/a": a, "dray/c": parents, "dray": parents} {
			if got, err := os.ReadFile(filepath.Join(mount, dir, "cpu.weight")); err == nil && strings.TrimSpace(string(got))[:len(weight)] != weight {
				t.Errorf("%s has the weight %q, want %s", dir, got, weight)
			}
		}
	}
	must(t, Cgroup{Path: "/dray/c/a"}.weigh(0.4, hs))
	want("4000", "10000")
	must(t, os.RemoveAll(filepath.Join(mount, "dray/c/a")))
	for _, dir := range []string{"dray/c", "dray"} { // a plain file keeps the end of a longer text
		must(t, os.WriteFile(filepath.Join(mount, dir, "cpu.weight"), []byte("10000"), 0o644))
	}
	if err := lighten("/dray/c/a", hs); err == nil || !strings.Contains(err.Error(), "the kernel made 10000 of 100") {
		t.Errorf("a weight that stays is no error: %v", err)
	}
}
