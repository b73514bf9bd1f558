// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

// patience bounds what an emulated guest on a busy machine may take.
const patience = 3 * time.Minute

func TestUnknownFeature(t *testing.T) {
	_, err := Needs{Features: []string{"hsfc"}}.Missing()
	if err == nil || !strings.Contains(err.Error(), "hsfc") || !strings.Contains(err.Error(), "hfsc") {
		t.Errorf("error %v", err)
	}
}

func TestWhatTheHostHasRunsHere(t *testing.T) {
	testenv.Root(t)
	out, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	r, err := Run(context.Background(), Needs{Features: []string{"pfifo"}}, Command{
		Argv: []string{"sh", "-c", "readlink /proc/self/ns/pid; exit 3"}, Stdout: &stdout,
	})
	if err != nil || !r.Native || r.Exit != 3 || stdout.String() != out+"\n" {
		t.Errorf("%+v, %q, %v", r, stdout.String(), err)
	}
}

// TestRuns: a kernel that chose full preemption when it booted is no generic one.
func TestRuns(t *testing.T) {
	for _, c := range []struct {
		h    inventory.Host
		want guest.Flavour
	}{
		{inventory.Host{Kernel: "6.1.0-40-amd64", CmdLine: "quiet"}, guest.Generic},
		{inventory.Host{Kernel: "6.1.0-40-amd64", CmdLine: "quiet preempt=full"}, guest.LowLatency},
		{inventory.Host{Kernel: "6.1.0-40-rt-amd64", CmdLine: "quiet", Realtime: true}, guest.Realtime},
		{inventory.Host{Kernel: "6.18.5", CmdLine: "preempt=full"}, ""},
	} {
		for _, f := range []guest.Flavour{guest.Generic, guest.LowLatency, guest.Realtime} {
			if Runs(c.h, f) != (f == c.want) {
				t.Errorf("%+v runs %s: %v", c.h, f, Runs(c.h, f))
			}
		}
	}
}

// TestGuestHasWhatTheHostLacks uses features that few kernels have built in, the most
// preemptible of Debian's kernels without PREEMPT_RT, and brings a file back.
func TestGuestHasWhatTheHostLacks(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, guest.Emulator, "depmod", "tc", "ip")
	t.Setenv("DRAY_GUEST", testenv.Built(t, guest.AgentProgram))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "out")
	needs := Needs{Features: []string{"hfsc", "netem", Openvswitch}, Kernel: guest.LowLatency, Guest: true, Memory: 512 << 20}
	var stdout, stderr bytes.Buffer
	r, err := Run(ctx, needs, Command{
		Argv: []string{"sh", "-c", `tc qdisc add dev lo root hfsc && tc qdisc show dev lo && grep -o dray.lab=1 /proc/cmdline &&
			mount -t debugfs none /sys/kernel/debug && grep -F '(full)' /sys/kernel/debug/sched/preempt &&
			grep -q '^openvswitch ' /proc/modules && echo kept >"$0/file"; exit 4`, dir},
		OutDir: dir, Stdout: &stdout, Stderr: &stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("booted %s with %s in %v", r.Kernel, r.Accel, r.Boot.Round(10*time.Millisecond))
	if r.Native || r.Exit != 4 || !strings.Contains(stdout.String(), "qdisc hfsc") || !strings.Contains(stdout.String(), "dray.lab=1") ||
		!strings.Contains(stdout.String(), "(full)") {
		t.Errorf("%+v: %s%s", r, stdout.String(), stderr.String())
	}
	if text, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(text) != "kept\n" {
		t.Errorf("the command's file: %q, %v", text, err)
	}
	if left, _ := filepath.Glob(labDir + "/guest-*"); len(left) > 0 {
		// Another process's guest is in use; an abandoned one is not.
		for _, d := range left {
			if lock, err := takeLock(d); err == nil {
				lock.Close()
				t.Errorf("left behind: %s", d)
			}
		}
	}
}
