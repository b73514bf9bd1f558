// SPDX-License-Identifier: Apache-2.0

package ovs_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/ovs"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

func TestConformance(t *testing.T) { transporttest.Run(t, ovs.New()) }

func newRig(t *testing.T) *transporttest.Rig {
	t.Helper()
	testenv.Root(t)
	item := ovs.New().Probe(context.Background())
	testenv.Kernel(t, item)
	if item.Status != inventory.OK || item.Version == "" {
		t.Fatalf("probe: %+v", item)
	}
	return transporttest.NewRig(t, ovs.New(), transporttest.Options{})
}

func TestReport(t *testing.T) {
	report := newRig(t).Up()
	if !strings.HasPrefix(report.Engine, "ovs 3") && !strings.HasPrefix(report.Engine, "ovs 2") {
		t.Errorf("engine %q", report.Engine)
	}
	switch report.Datapath {
	case "netdev":
		if len(report.Offloads) != 2 {
			t.Errorf("the checksum offload of 2 ports must be off, reported: %+v", report.Offloads)
		}
	case "system":
		if len(report.Offloads) != 0 {
			t.Errorf("the kernel datapath needs no offload off, reported: %+v", report.Offloads)
		}
	default:
		t.Errorf("datapath %q", report.Datapath)
	}
}

// TestDaemonDies kills a daemon during set-up: it must fail soon, give the
// reason, and leave nothing.
func TestDaemonDies(t *testing.T) {
	for daemon, want := range map[string]string{
		"ovs-vswitchd": "ovs-vswitchd has ended",
		"ovsdb-server": "database connection failed",
	} {
		r := newRig(t)
		began := time.Now()
		err := r.Try(r.Steps(), func(s step.Step, p step.Phase) error {
			if p == step.Before && strings.Contains(s.Name, "create bridge") {
				kill(t, r.Spec.Cgroup, daemon)
			}
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s died: error %v, want one with %q", daemon, err, want)
		}
		if took := time.Since(began); took > 50*time.Second {
			t.Errorf("%s died: it took %s to notice", daemon, took)
		}
		r.Clean("after " + daemon + " died")
	}
}

// kill kills the process of that name in a cgroup that holds both daemons.
func kill(t *testing.T, c host.Cgroup, name string) {
	t.Helper()
	pids, err := c.Processes()
	if err != nil || len(pids) != 2 {
		t.Errorf("the cgroup holds %v (%v), not ovsdb-server and ovs-vswitchd", pids, err)
	}
	for _, pid := range pids {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil {
			t.Error(err)
		}
		if strings.TrimSpace(string(comm)) == name {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestMissingPort removes a port before it is attached: ovs-vsctl still
// succeeds, so the driver has to check.
func TestMissingPort(t *testing.T) {
	r := newRig(t)
	port := r.Spec.Ports()[1]
	err := r.Try(r.Steps(), func(s step.Step, p step.Phase) error {
		if p != step.Before || !strings.Contains(s.Name, "create bridge") {
			return nil
		}
		runner := step.Runner{Removers: host.Removers()}
		return runner.Remove(context.Background(), []step.Resource{transport.PortResource(port)})
	})
	if err == nil || !strings.Contains(err.Error(), "p2") {
		t.Errorf("error %v does not name the port", err)
	}
	r.Clean("after a port was missing")
}

// TestLongDirectory: the switch's sockets work in a directory whose path is too long for
// them.
func TestLongDirectory(t *testing.T) {
	r := newRig(t)
	r.Spec.Dir += strings.Repeat("/long", 20)
	testenv.Must(t, os.MkdirAll(r.Spec.Dir, 0o711))
	r.Up()
}
