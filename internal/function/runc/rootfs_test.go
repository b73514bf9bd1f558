// SPDX-License-Identifier: Apache-2.0

package runc_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/function/docker/dockertest"
	"github.com/drayage/dray/internal/function/runc"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/function/runtimetest"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// rootfs is a root file system with one static program, /bin/pause.
func rootfs(t *testing.T, dirs ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range append(dirs, "bin") {
		testenv.Must(t, os.Mkdir(filepath.Join(root, dir), 0o755))
	}
	testenv.Must(t, os.Chmod(root, 0o755))
	return root
}

func TestOwnRootFileSystem(t *testing.T) {
	needRunc(t)
	root := rootfs(t, "proc", "sys", "dev")
	program, err := os.ReadFile(dockertest.BuildPause(t))
	testenv.Must(t, err)
	testenv.Must(t, os.WriteFile(filepath.Join(root, "bin", "pause"), program, 0o755))
	f := runtimetest.Up(t, runc.New(), chain.Function{Rootfs: root, CPUs: chain.CPURequest{Set: []int{0}}})
	r := f.Start("pause")
	inside, err := os.ReadDir("/proc/" + strconv.Itoa(r.ID().PID) + "/root")
	testenv.Must(t, err)
	var names []string
	for _, e := range inside {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "bin dev proc sys" {
		t.Errorf("the function's root holds %s", got)
	}
	ctx, cancel := context.WithTimeout(context.Background(), runtimetest.Patience)
	defer cancel()
	testenv.Must(t, r.Stop(ctx))
	if r.Status(); r.ID().Alive() {
		t.Error("it still runs")
	}
}

func TestRootFileSystemWithoutMountPoints(t *testing.T) {
	root := rootfs(t, "proc", "sys")
	_, err := runc.New().Sandbox(runtime.Spec{Function: chain.Function{Name: "du", Rootfs: root}})
	if err == nil || !strings.Contains(err.Error(), "/dev is not a directory") {
		t.Errorf("error %v", err)
	}
}

// TestUnreachableDirectory keeps the function's root user out of the directory.
func TestUnreachableDirectory(t *testing.T) {
	needRunc(t)
	f := runtimetest.New(t, runc.New(), chain.Function{})
	testenv.Must(t, os.Chmod(f.Spec.Dir, 0o700))
	if err := f.Up(nil); err == nil || !strings.Contains(err.Error(), "chmod o+x "+f.Spec.Dir) {
		t.Errorf("error %v", err)
	}
	f.NothingLeft()
}
