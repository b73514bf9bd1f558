// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/test/testenv"
)

// TestVirtualMachine brings up a function in a virtual machine, inspects it,
// measures its link, and takes it down. It boots once.
//
//	runc              vm
//	+-----+  bridge  +-----+
//	| gnb n3========n3 upf |
//	+-----+          +-----+
func TestVirtualMachine(t *testing.T) {
	testenv.Program(t, guest.Emulator, "depmod")
	b := newBench(t)
	b.env = append(b.env, "DRAY_GUEST="+testenv.Built(t, guest.AgentProgram))
	b.want(0, "up", example("vm.yaml"))
	inside := b.want(0, "exec", "vm", "upf", "--", "sh", "-c", "uname -r; ip -4 -o addr show n3; cat /sys/class/net/n3/mtu")
	info, err := guest.ReadInfo(filepath.Join(b.state, "vm", "fn", "upf", "guest"))
	if err != nil {
		t.Fatal(err)
	}
	if !info.Process.Alive() {
		t.Error("the machine does not run")
	}
	for _, want := range []string{info.Kernel + "\n", "10.61.0.2/24", "\n1500\n"} {
		if !strings.Contains(inside.Stdout, want) {
			t.Errorf("in the machine there is no %q: %s", want, inside)
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	verified := b.dray("verify", "vm", "--profile", "quick", "--out", out)
	if !strings.Contains(verified.Stdout, "1500 B passed") {
		t.Errorf("verify: %s", verified)
	}
	trials, _, err := record.ReadFile(filepath.Join(out, "records.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(trials) == 0 {
		t.Fatal("no trial was made")
	}
	for _, trial := range trials {
		testenv.Measured(t, trial.ID, trial.Error)
		if slices.Contains(trial.Marks, record.MarkEmulated) != (info.Accel == guest.TCG) {
			t.Errorf("%s on a machine with %s has the marks %v", trial.Quantity, info.Accel, trial.Marks)
		}
		if trial.OneWay != nil {
			t.Errorf("%s: stamps of two machines were compared", trial.Quantity)
		}
	}
	b.want(0, "down", "vm")
	if info.Process.Alive() {
		t.Error("the machine outlives its chain")
	}
}

// TestContainerInMachine brings up a function whose command runs in a container in a
// virtual machine. There it has no privilege, its own processes and its ports: one
// through a tap, one the machine's own device. It restarts after it has ended. It boots
// once.
//
//	runc              vm: runc
//	+-----+  bridge  +---------+
//	| gnb n3========n3   upf   |
//	|     n6========n6         |
//	+-----+  macvtap +---------+
func TestContainerInMachine(t *testing.T) {
	testenv.Program(t, guest.Emulator, "depmod", "runc")
	b := newBench(t)
	b.env = append(b.env, "DRAY_GUEST="+testenv.Built(t, guest.AgentProgram))
	file := filepath.Join(t.TempDir(), "chain.yaml")
	if err := os.WriteFile(file, []byte(`apiVersion: drayage/v1
kind: Chain
name: nested
functions:
  - name: gnb
    ports:
      - {name: n3, ip: 10.63.0.1/24}
      - {name: n6, ip: 10.63.6.1/24, mtu: 4000}
  - name: upf
    runtime: vm
    vm: {runtime: runc}
    restart: always
    command: [sh, -c, "trap 'exit 3' TERM; echo begun as $$; grep CapEff /proc/self/status; while :; do sleep 0.2; done"]
    ports:
      - {name: n3, ip: 10.63.0.2/24}
      - {name: n6, ip: 10.63.6.2/24, mtu: 4000}
links:
  - {name: n3, ends: [gnb.n3, upf.n3], transport: bridge}
  - {name: n6, ends: [gnb.n6, upf.n6], transport: macvtap}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	b.want(0, "up", file)
	const look = `grep -E '^(Cap(Eff|Prm|Bnd)|NoNewPrivs|Seccomp):' /proc/self/status; tr '\0' ' ' </proc/1/cmdline; echo
		cat /proc/self/uid_map; touch /etc/of-the-test 2>&1; mount -t tmpfs none /tmp 2>&1; ls /sys/class/net; ping -q -c 2 -W 5 10.63.0.1; echo ping $?; exit 7`
	inside := b.want(7, "exec", "nested", "upf", "--", "sh", "-c", look)
	for _, want := range []string{
		"CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n",
		"\nsh -c trap", "Read-only file system", "permission denied", "\nn3\nn6\n", "\nping 0\n",
	} {
		if !strings.Contains(inside.Stdout, want) {
			t.Errorf("in the container there is no %q: %s", want, inside)
		}
	}
	if ids := regexp.MustCompile(`(?m)^ +0 +[1-9][0-9]+ +65536$`); !ids.MatchString(inside.Stdout) {
		t.Errorf("its root is not mapped to another user: %s", inside)
	}
	b.want(0, "exec", "nested", "gnb", "--", "ping", "-q", "-c", "2", "-W", "5", "10.63.0.2")
	const persist = "for i in 1 2 3 4 5 6 7 8 9 10; do ping -q -c 2 -W 5 -s 3900 -M do $0 && exit 0; sleep 1; done; exit 1"
	b.want(0, "exec", "nested", "upf", "--", "sh", "-c", persist, "10.63.6.1")
	b.want(0, "exec", "nested", "gnb", "--", "sh", "-c", persist, "10.63.6.2")
	b.begun(1)
	b.dray("exec", "nested", "upf", "--", "sh", "-c", "kill -TERM 1") // which may end with it
	b.begun(2)
	b.want(0, "exec", "nested", "upf", "--", "ping", "-q", "-c", "2", "-W", "5", "10.63.0.1")
	b.want(0, "down", "nested")
}

// begun waits until TestContainerInMachine's command has begun that often.
func (b *bench) begun(times int) {
	b.t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		logs := b.want(0, "logs", "nested", "upf")
		if strings.Count(logs.Stdout, "begun as 1\n") >= times {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("the command did not begin %d times: %s", times, logs)
		}
	}
}

// TestMachineOverVhostUser connects two interfaces of a virtual machine by a switch
// that maps the machine's memory. It passes packets, kills the switch, and passes
// packets again. The kernel may stop its tick on all CPUs but the first. It boots
// once.
//
//	vm                     host
//	+-------------+       +---------+
//	| br     [up] |= = = =| testpmd |
//	+-------------+       +---------+
func TestMachineOverVhostUser(t *testing.T) {
	testenv.Program(t, guest.Emulator, "depmod", "dpdk-testpmd")
	b := newBench(t)
	b.env = append(b.env, "DRAY_GUEST="+testenv.Built(t, guest.AgentProgram))
	file := filepath.Join(t.TempDir(), "chain.yaml")
	if err := os.WriteFile(file, []byte(`apiVersion: drayage/v1
kind: Chain
name: vmswitch
functions:
  - name: vm
    runtime: vm
    vm: {nohz_full: true}
    ports:
      - {name: br, ip: 10.62.0.1/24, mtu: 4000}
      - {name: up, ip: 10.62.0.2/24, mtu: 4000}
links:
  - {name: n3, ends: [vm.br, vm.up], transport: vhost-user}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	b.want(0, "up", file)
	const apart = "ip netns add n && ip link set dev up netns n && ip netns exec n ip addr add 10.62.0.2/24 dev up && ip netns exec n ip link set dev up up"
	const ping = "for i in 1 2 3 4 5 6 7 8 9 10; do ping -q -c 2 -W 5 -s 3900 -M do 10.62.0.2 && exit 0; sleep 1; done; exit 1"
	b.want(0, "exec", "vmswitch", "vm", "--", "sh", "-c", apart+" && "+ping)
	if tickless := b.want(0, "exec", "vmswitch", "vm", "--", "cat", "/sys/devices/system/cpu/nohz_full"); !strings.HasPrefix(tickless.Stdout, "1") {
		t.Errorf("the tick may stop on other CPUs than the second and later ones: %s", tickless)
	}
	id := b.switchOf("vmswitch").ID
	if !id.Signal(syscall.SIGKILL) {
		t.Fatal("the switch does not run")
	}
	if err := id.AwaitEnd(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.want(0, "exec", "vmswitch", "vm", "--", "sh", "-c", ping)
	b.want(0, "down", "vmswitch")
}
