// SPDX-License-Identifier: Apache-2.0

package runc_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/drayage/dray/internal/function/runc"
	"github.com/drayage/dray/internal/function/runtimetest"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

func needRunc(t *testing.T) {
	t.Helper()
	testenv.Root(t)
	testenv.Program(t, "runc", "perl")
	testenv.Kernel(t, runc.New().Probe(context.Background()))
}

func TestConformance(t *testing.T) {
	needRunc(t)
	runtimetest.Run(t, runtimetest.Config{Runtime: runc.New()})
}

// TestProbeNamesRefusedUserNamespaces probes on a host that allows no user
// namespaces: a process in its own user namespace with a limit of zero.
func TestProbeNamesRefusedUserNamespaces(t *testing.T) {
	const inside = "DRAY_TEST_WITHOUT_USERNS"
	if os.Getenv(inside) == "" {
		needRunc(t)
		self := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
		self.Env = append(os.Environ(), inside+"=1")
		root := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
		self.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: root, GidMappings: root}
		out, err := self.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	testenv.Must(t, os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0))
	item := runc.New().Probe(context.Background())
	if item.Status != inventory.Missing || !strings.Contains(item.Reason, "user namespace") || !strings.Contains(item.Fix, "user.max_user_namespaces") {
		t.Errorf("%+v", item)
	}
}
