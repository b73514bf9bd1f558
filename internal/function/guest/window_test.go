// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/test/testenv"
)

// TestPlugMapsTheFile plugs sealed memory into QEMU, whose CPUs do not run: it is mapped, so
// it can be sealed against new mappings, and the window is full.
func TestPlugMapsTheFile(t *testing.T) {
	testenv.Program(t, Emulator)
	dir, err := os.MkdirTemp("", "dray-window-")
	testenv.Must(t, err)
	defer os.RemoveAll(dir)
	args := append([]string{
		"-machine", "q35,accel=tcg", "-S", "-m", "64M", "-nodefaults", "-no-user-config", "-display", "none",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny", "-qmp", "unix:" + filepath.Join(dir, fileQMP) + ",server=on,wait=off",
	}, windowArgs(2)...)
	var words strings.Builder
	cmd := exec.Command(Emulator, args...)
	cmd.Stderr = &words
	testenv.Must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	const size = 2 << 20
	fd, err := unix.MemfdCreate("memory", unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC)
	testenv.Must(t, err)
	defer unix.Close(fd)
	testenv.Must(t, unix.Fallocate(fd, 0, 0, size))
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
	testenv.Must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for err = Plug(ctx, dir, 1, fd, size); err != nil && strings.Contains(err.Error(), "connect"); err = Plug(ctx, dir, 1, fd, size) {
		time.Sleep(10 * time.Millisecond) // QEMU makes its socket first
	}
	if err != nil {
		t.Fatalf("%v; QEMU: %s", err, words.String())
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_FUTURE_WRITE|unix.F_SEAL_SEAL)
	testenv.Must(t, err)
	if err := Plug(ctx, dir, 1, fd, size); err == nil {
		t.Error("a full window took more")
	}
	maps, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "maps"))
	testenv.Must(t, err)
	if n := strings.Count(string(maps), "/memfd:memory"); n != 1 {
		t.Errorf("QEMU maps the memory %d times", n)
	}
}
