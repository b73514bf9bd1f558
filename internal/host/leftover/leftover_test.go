// SPDX-License-Identifier: Apache-2.0

package leftover_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/leftover"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/test/testenv"
)

func take(t *testing.T, name string) leftover.Snapshot {
	t.Helper()
	s, err := leftover.Take()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(s) {
		t.Error("not sorted")
	}
	return s.Containing(name)
}

// TestTakeSeesEveryKind makes one thing of each kind, and removes them with the
// production removers.
func TestTakeSeesEveryKind(t *testing.T) {
	testenv.Root(t)
	dir, err := os.MkdirTemp("/run", "dray-leftover-")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(dir)
	testenv.NoLeaks(t, name)
	ns := host.Netns{Path: dir + "/net"}
	cgroup := host.Cgroup{Path: "/" + name}
	made := []step.Resource{
		host.DirResource(dir), host.NamespaceResource(ns.Path), host.CgroupResource(cgroup), host.MountResource(dir + "/root"),
	}
	remove := func() {
		r := step.Runner{Removers: host.Removers()}
		if err := r.Remove(context.Background(), made); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(remove)

	before := take(t, name)
	sleep := exec.Command("sleep", "1000")
	for _, err := range []error{
		host.CreateNetns(ns.Path),
		cgroup.Create(host.Limits{}),
		os.Mkdir(dir+"/root", 0o755),
		host.BindReadOnly("/", dir+"/root"),
		os.WriteFile(dir+"/journal", nil, 0o600),
		host.Place{Cgroup: cgroup, Netns: ns}.Start(sleep),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = sleep.Wait() })
	t.Cleanup(remove) // before the wait

	diff := before.Diff(take(t, name))
	for _, want := range []string{
		"+ namespace " + ns.Path, "+ mount " + dir + "/root", "+ cgroup ", "+ process ", "+ file " + dir + "/journal",
	} {
		if !slices.ContainsFunc(diff, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("no %q among\n  %s", want, strings.Join(diff, "\n  "))
		}
	}
	if slices.ContainsFunc(diff, func(line string) bool { return strings.Contains(line, dir+"/root/") }) {
		t.Error("went through the bind mount of the host's root")
	}
	all, err := leftover.Take()
	if err != nil || !slices.ContainsFunc(all, func(line string) bool { return strings.HasPrefix(line, "link lo ") }) {
		t.Errorf("no lo in %v (%v)", all, err)
	}
}

func TestDiff(t *testing.T) {
	a, b := leftover.Snapshot{"x", "y"}, leftover.Snapshot{"y", "z"}
	if got := a.Diff(b); !slices.Equal(got, []string{"+ z", "- x"}) {
		t.Error(got)
	}
	if got := a.Diff(a); got != nil {
		t.Error(got)
	}
}
