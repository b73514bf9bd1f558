// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// TestAnExternalFunctionGetsNoRing takes the packet socket from an application that
// Drayage did not start, so that no seccomp filter stands between it and the kernel.
func TestAnExternalFunctionGetsNoRing(t *testing.T) {
	t.Parallel()
	if err := host.ProbePacketOptions(); err != nil {
		t.Skip(err)
	}
	b := newBench(t)
	var functions strings.Builder
	for _, name := range []string{"a", "b"} {
		fmt.Fprintf(&functions, "  - {name: %s, runtime: external, external: {pid: %d}, ports: [{name: p0, face: native}]}\n", name, elsewhere(t))
	}
	b.want(0, "up", b.file(fmt.Sprintf("apiVersion: drayage/v1\nkind: Chain\nname: outside\nfunctions:\n%slinks:\n  - {name: ab, ends: [a.p0, b.p0], transport: veth}\n", functions.String())))
	defer b.want(0, "down", "outside")

	application := exec.Command(generator(t), "sink", "--port", "dray:p0")
	application.Env = append(os.Environ(), "DRAY_PORTS="+b.ports("outside", "a"))
	testenv.Must(t, application.Start())
	defer func() { _ = application.Process.Kill(); _ = application.Wait() }()
	fd := packetSocketOf(t, application.Process.Pid)
	defer unix.Close(fd)
	ring := unix.TpacketReq{Block_size: 1 << 20, Block_nr: 16, Frame_size: 2048, Frame_nr: 16 << 9}
	for _, option := range []int{unix.PACKET_RX_RING, unix.PACKET_TX_RING} {
		if err := unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, option, &ring); !errors.Is(err, unix.EPERM) {
			t.Errorf("option %d, a ring of 16 MiB: %v", option, err)
		}
	}
	testenv.Must(t, unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1))
}

// elsewhere is a process in a network namespace of its own.
func elsewhere(t *testing.T) (pid int) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET}
	testenv.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

// ports is the directory of the sockets of a function's native ports.
func (b *bench) ports(chain, function string) string {
	b.t.Helper()
	var state struct {
		Sandboxes map[string]struct{ Ports string }
	}
	text, err := os.ReadFile(filepath.Join(b.state, chain, "state.json"))
	testenv.Must(b.t, err)
	testenv.Must(b.t, json.Unmarshal(text, &state))
	return state.Sandboxes[function].Ports
}

// packetSocketOf waits until a process holds a packet socket, and takes it.
func packetSocketOf(t *testing.T, pid int) int {
	t.Helper()
	process, err := unix.PidfdOpen(pid, 0)
	testenv.Must(t, err)
	defer unix.Close(process)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for theirs := range 64 {
			fd, err := unix.PidfdGetfd(process, theirs, 0)
			if err != nil {
				continue
			}
			if family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err == nil && family == unix.AF_PACKET {
				return fd
			}
			unix.Close(fd)
		}
	}
	t.Fatal("the application got no packet socket")
	return -1
}
