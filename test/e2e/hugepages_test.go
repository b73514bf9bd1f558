// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// limited is a chain of two functions, each with a huge page limit.
const limited = `apiVersion: drayage/v1
kind: Chain
name: victim
functions:
  - {name: a, runtime: process, command: [sleep, "1000"], hugepages: {2Mi: 2Mi}}
  - {name: b, runtime: runc, command: [sleep, "1000"], hugepages: {2Mi: 2Mi}}
`

// TestKillWithHugePageLimits kills dray while it sets up huge page limits. gc and
// down must leave no hierarchy that Drayage mounted for them, unless others now
// have groups in it.
func TestKillWithHugePageLimits(t *testing.T) {
	_, err := host.HugePageLimits()
	testenv.Kernel(t, host.ProbeItem("limits of huge pages", err))
	testenv.HugePages(t, 2)
	b := newBench(t)
	file := b.file(limited)
	b.want(0, "up", file)
	b.want(0, "down", "victim")
	b.hierarchyGoes()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for i := range 4 {
		cmd := b.command(context.Background(), "up", file)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		delay := time.Duration(rng.Int64N(int64(700 * time.Millisecond)))
		time.Sleep(delay)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		b.collect()
		if left := b.leftovers("victim"); len(left) > 0 {
			t.Fatalf("kill %d after %v left %v", i, delay, left)
		}
		b.hierarchyGoes()
	}
}

// hierarchyGoes waits until no hierarchy is mounted by Drayage, or others have
// groups in it, whose removal unmounts it.
func (b *bench) hierarchyGoes() {
	b.t.Helper()
	var left string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if left = b.emptyHierarchy(); left == "" {
			return
		}
	}
	b.t.Fatalf("%s, mounted by dray, remains without a group", left)
}

// emptyHierarchy is a hierarchy that Drayage mounted and nobody else uses; "" if none.
func (b *bench) emptyHierarchy() string {
	b.t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo") // proc_pid_mountinfo(5)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, line := range strings.Split(string(mounts), "\n") {
		if !strings.Contains(line, " - cgroup dray ") {
			continue
		}
		point := strings.Fields(line)[4]
		entries, err := os.ReadDir(point)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			b.t.Fatal(err)
		}
		others := false
		for _, e := range entries {
			others = others || e.IsDir() && !strings.Contains(e.Name(), filepath.Base(b.state))
		}
		if !others {
			return point
		}
	}
	return ""
}
