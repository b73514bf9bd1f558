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

// On v2 a share is of another largest weight. This runs on plain files, instead of a
// hierarchy that has the cpu controller.
func TestCgroupShareOnV2(t *testing.T) {
	mount := t.TempDir()
	for _, dir := range []string{"dray/c/a", "dray/c", "dray"} {
		must(t, os.MkdirAll(filepath.Join(mount, dir), 0o755))
		must(t, os.WriteFile(filepath.Join(mount, dir, "cpu.weight"), []byte("100\n"), 0o644))
	}
	hs := []hierarchy{{mount: mount, v2: true, controllers: []string{"cpu", "memory"}}}
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
