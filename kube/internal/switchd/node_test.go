// SPDX-License-Identifier: Apache-2.0

package switchd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/kube/internal/meet"
	"github.com/drayage/dray/kube/internal/nodeswitch"
	"github.com/drayage/dray/test/testenv"
)

// The test runs itself again as a switch, to be killed.
const (
	dirVariable = "DRAY_TEST_SWITCH"
	// asleepVariable is how long threads of its ovs-vswitchd may sleep; default: as ever.
	asleepVariable = "DRAY_TEST_SWITCH_ASLEEP"
)

func TestMain(m *testing.M) {
	dir := os.Getenv(dirVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if longest, err := time.ParseDuration(os.Getenv(asleepVariable)); err == nil {
		asleep = longest
	}
	if err := Serve(ctx, Options{Dir: dir, Run: filepath.Join(dir, "ovs"), Device: "eth0", Port: Port, Memory: 512, Log: log}); err != nil {
		log.Error("switch", "error", err)
		os.Exit(1)
	}
}

var patience = testenv.Patient(2 * time.Minute)

// await waits until f returns "". That says what is missing.
func await(t *testing.T, f func() string) {
	t.Helper()
	var lacks string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if lacks = f(); lacks == "" {
			return
		}
	}
	t.Fatal(lacks)
}

// node has a switch, in a network namespace with an interface eth0, and a broker.
type node struct {
	t      *testing.T
	client nodeswitch.Client
	addr   netip.Addr
	ns     *os.File
	broker string
	want   []meet.Meeting
	cmd    *exec.Cmd
}

// newNodes makes two nodes whose interfaces are joined, each with a broker.
func newNodes(t *testing.T) [2]*node {
	t.Helper()
	testenv.Root(t)
	testenv.Program(t, "dpdk-testpmd", "ovs-vsctl", "ovsdb-server", "ovs-vswitchd", "setpriv", "unshare", "nsenter")
	var both [2]*node
	var ends [2]host.Iface
	for i := range both {
		dir, err := os.MkdirTemp("", "dray-switch-") // a socket's path has at most 108 bytes
		testenv.Must(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		ns, err := host.NewNetns()
		testenv.Must(t, err)
		t.Cleanup(func() { ns.Close() })
		both[i] = &node{t: t, client: nodeswitch.Client{Dir: dir}, addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), ns: ns, broker: filepath.Join(dir, "meet")}
		ends[i] = host.Iface{Netns: host.OfFile(ns), Name: "eth0", MTU: 1500}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- meet.Serve(ctx, both[i].broker, slog.New(slog.DiscardHandler)) }()
		t.Cleanup(func() { stop(); testenv.Must(t, <-ended) })
	}
	testenv.Must(t, host.CreateVeth(ends[0], ends[1]))
	for i, n := range both {
		testenv.Must(t, errors.Join(ends[i].Netns.AddAddr("eth0", netip.PrefixFrom(n.addr, 24)), ends[i].Netns.SetUp("eth0")))
	}
	return both
}

// start runs the node's switch.
func (n *node) start() {
	n.t.Helper()
	n.cmd = exec.Command("nsenter", "--net=/proc/self/fd/3", os.Args[0])
	n.cmd.ExtraFiles = []*os.File{n.ns}
	n.cmd.Env = append(os.Environ(), dirVariable+"="+n.client.Dir)
	n.cmd.Stdout, n.cmd.Stderr = testWriter{n.t}, testWriter{n.t}
	testenv.Must(n.t, n.cmd.Start())
	cmd := n.cmd
	n.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// apply asks for links until they are made, and returns their numbers.
func (n *node) apply(links ...nodeswitch.Link) (made []nodeswitch.Made) {
	n.t.Helper()
	await(n.t, func() string {
		var err error
		if made, err = n.client.Apply(n.t.Context(), links, true); err != nil {
			return err.Error()
		}
		for _, m := range made {
			if m.Error != "" || len(m.Faults) > 0 {
				return fmt.Sprintf("%+v", m)
			}
		}
		return ""
	})
	return made
}

// kill kills a program of the node's switch.
func (n *node) kill(program string) {
	n.t.Helper()
	for _, pid := range n.children() {
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.HasPrefix(string(name), program) {
			testenv.Must(n.t, syscall.Kill(pid, syscall.SIGKILL))
			return
		}
	}
	n.t.Fatalf("%s does not run", program)
}

// vswitchd is the process of ovs-vswitchd; 0: there is none.
func (n *node) vswitchd() int {
	for _, pid := range n.children() {
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.HasPrefix(string(name), "ovs-vswitchd") {
			return pid
		}
	}
	return 0
}

// restart kills the switch itself, and starts it again.
func (n *node) restart() {
	n.t.Helper()
	testenv.Must(n.t, n.cmd.Process.Kill())
	_ = n.cmd.Wait()
	n.start()
}

// children are the processes of Open vSwitch.
func (n *node) children() (all []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", n.cmd.Process.Pid))
	for _, file := range lists {
		pids, _ := os.ReadFile(file)
		for _, text := range strings.Fields(string(pids)) {
			if pid, err := strconv.Atoi(text); err == nil {
				all = append(all, pid)
			}
		}
	}
	slices.Sort(all)
	return all
}

// meets arranges that the switch is shown the sockets of pods, each by its end of a link.
func (n *node) meets(link string, pods ...*pod) {
	n.t.Helper()
	for _, p := range pods {
		n.want = append(n.want, meet.Meeting{Name: fmt.Sprint(link, p.end), Ends: [2]meet.End{{Socket: p.door}, {Socket: nodeswitch.DoorOf(n.client.Dir, link, p.end)}}})
	}
	await(n.t, func() string { // the broker is starting
		if faults, err := meet.Apply(n.t.Context(), n.broker, n.want); err != nil || len(faults) > 0 {
			return fmt.Sprint(err, faults)
		}
		return ""
	})
}

func (n *node) port(link string, end int) nodeswitch.Port {
	return nodeswitch.Port{End: end, MAC: chain.MAC(fmt.Sprintf("02:00:00:00:00:0%d", end+1)), Door: nodeswitch.DoorOf(n.client.Dir, link, end)}
}

// unreachable counts what told the node's kernel that nobody received a packet.
func (n *node) unreachable() int {
	n.t.Helper()
	cmd := exec.Command("nsenter", "--net=/proc/self/fd/3", "cat", "/proc/net/snmp")
	cmd.ExtraFiles = []*os.File{n.ns}
	out, err := cmd.Output()
	testenv.Must(n.t, err)
	_, names, _ := strings.Cut(string(out), "Icmp: ")
	_, values, _ := strings.Cut(names, "Icmp: ")
	for i, name := range strings.Fields(names) {
		if name == "InDestUnreachs" {
			count, err := strconv.Atoi(strings.Fields(values)[i])
			testenv.Must(n.t, err)
			return count
		}
	}
	n.t.Fatal("the kernel counts no InDestUnreachs")
	return 0
}
