// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
)

// The test runs itself again as a server and as a keeper, to be killed.
const (
	roleVariable = "DRAY_TEST_NODENET"
	dirVariable  = "DRAY_TEST_NODENET_DIR"
	nodeAddress  = "192.0.2.1"
)

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var err error
	switch dir := os.Getenv(dirVariable); os.Getenv(roleVariable) {
	case "server":
		log := slog.New(slog.NewTextHandler(os.Stderr, nil))
		err = errors.Join(makeNode(), Serve(ctx, Options{Dir: dir, Addr: netip.MustParseAddr(nodeAddress), Pods: podsOf(dir), Log: log}))
	case "keeper":
		err = Keep(ctx, dir)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		slog.Error("test", "error", err)
		os.Exit(1)
	}
}

// makeNode gives this process's namespace an interface with the node's address.
func makeNode() error {
	if _, err := deviceOf(netip.MustParseAddr(nodeAddress)); err == nil {
		return nil
	}
	near, far := host.Iface{Name: "eth0", MTU: 1600}, host.Iface{Name: "line", MTU: 1600}
	return errors.Join(host.HostNetns.SetUp("lo"), host.CreateVeth(near, far), host.HostNetns.SetUp("eth0"), host.HostNetns.SetUp("line"),
		host.HostNetns.AddAddr("eth0", netip.MustParsePrefix(nodeAddress+"/24")))
}

// start runs this test as a server or a keeper. The namespace of the node outlives both. A keeper listens when start returns: a
// half that is made earlier is kept only later, and a server that dies in between loses it.
func start(t *testing.T, role, dir string, node *os.File) *exec.Cmd {
	t.Helper()
	c := exec.Command("nsenter", "--net=/proc/self/fd/3", os.Args[0])
	c.ExtraFiles = []*os.File{node}
	c.Env = append(os.Environ(), roleVariable+"="+role, dirVariable+"="+dir)
	c.Stderr = testWriter{t}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(c) })
	if role == "keeper" {
		awaitKept(t, dir, anyNumber)
	}
	return c
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

func kill(c *exec.Cmd) {
	_ = c.Process.Kill()
	_ = c.Wait()
}

func mac(t *testing.T, text string) chain.MAC {
	t.Helper()
	if _, err := net.ParseMAC(text); err != nil {
		t.Fatal(err)
	}
	return chain.MAC(text)
}

// pair are two halves, each the other's peer; both are on one node.
func pair(t *testing.T, c Client) (made []Made) {
	t.Helper()
	a, b := Half{Name: "ns/c/a", MAC: mac(t, "02:00:00:00:00:0a"), MTU: 1500}, Half{Name: "ns/c/b", MAC: mac(t, "02:00:00:00:00:0b"), MTU: 1500}
	made = applied(t, c, []Half{a, b})
	at := netip.MustParseAddr(nodeAddress)
	a.Peer, b.Peer = &Peer{MAC: b.MAC, Addr: at, VNI: made[1].VNI}, &Peer{MAC: a.MAC, Addr: at, VNI: made[0].VNI}
	return applied(t, c, []Half{a, b})
}

// applied has the server make exactly these halves, each with a tunnel.
func applied(t *testing.T, c Client, halves []Half) []Made {
	t.Helper()
	made := apply(t, c, halves, true)
	for _, m := range made {
		if m.Error != "" || m.VNI == 0 {
			t.Fatalf("%+v", made)
		}
	}
	return made
}

// apply calls the server, which may just be starting.
func apply(t *testing.T, c Client, halves []Half, prune bool) []Made {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		made, err := c.Apply(t.Context(), halves, prune)
		if errors.Is(err, ErrAbsent) && time.Now().Before(deadline) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
}

func sockets(t *testing.T, c Client, half string, queues int) []int {
	t.Helper()
	fds, err := c.Sockets(t.Context(), half, Device, queues)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(fds) })
	return fds
}

// passes sends a frame from one socket to another.
func passes(t *testing.T, from, to int, text string) bool {
	t.Helper()
	frame := append([]byte{2, 0, 0, 0, 0, 0x0b, 2, 0, 0, 0, 0, 0x0a, 0x88, 0xb5}, text...)
	if _, err := unix.Write(from, frame); err != nil {
		t.Log(err)
		return false
	}
	buffer := make([]byte, 2000)
	for range 3000 {
		if n, err := unix.Read(to, buffer); err == nil && bytes.Contains(buffer[:n], []byte(text)) {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// removeGroup removes the control group that the servers entered.
func removeGroup(t *testing.T) {
	tree, err := mountCgroup2()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(tree)
	own, err := ownCgroup2()
	if err == nil {
		err = unix.Unlinkat(tree, filepath.Join(own, ringsGroup), unix.AT_REMOVEDIR)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestHalves(t *testing.T) {
	n := newNode(t)
	c, dir, node := n.Client, n.dir, n.ns
	if _, err := c.Info(t.Context()); !errors.Is(err, ErrAbsent) {
		t.Errorf("without a server: %v", err)
	}
	keeper := start(t, "keeper", dir, node)
	server := start(t, "server", dir, node)
	before := pair(t, c)
	if info, err := c.Info(t.Context()); err != nil || info != (Info{netip.MustParseAddr(nodeAddress), 1600, true}) {
		t.Errorf("%+v, %v", info, err)
	}
	a, b := sockets(t, c, "ns/c/a", 1)[0], sockets(t, c, "ns/c/b", 1)[0]
	if !passes(t, a, b, "first") {
		t.Fatal("no packet passes")
	}

	ring := unix.TpacketReq{Block_size: 4096, Block_nr: 1, Frame_size: 2048, Frame_nr: 2}
	for _, option := range []int{unix.PACKET_RX_RING, unix.PACKET_TX_RING} {
		if err := unix.SetsockoptTpacketReq(a, unix.SOL_PACKET, option, &ring); !errors.Is(err, unix.EPERM) {
			t.Errorf("a ring on a packet socket: %v", err)
		}
	}

	kill(server)
	if !passes(t, a, b, "without a server") {
		t.Error("no packet passes without a server")
	}
	server = start(t, "server", dir, node)
	if after := pair(t, c); !reflect.DeepEqual(after, before) {
		t.Errorf("the next server has %+v, not %+v", after, before)
	}
	if !passes(t, sockets(t, c, "ns/c/a", 2)[0], b, "another server") {
		t.Error("no packet passes from a new socket")
	}

	kill(keeper)
	keeper = start(t, "keeper", dir, node)
	awaitKept(t, dir, 2)
	kill(server)
	server = start(t, "server", dir, node)
	if after := pair(t, c); !reflect.DeepEqual(after, before) {
		t.Errorf("after the keeper and then the server died: %+v, not %+v", after, before)
	}

	applied(t, c, []Half{{Name: "ns/c/b", MAC: mac(t, "02:00:00:00:00:0b"), MTU: 1500}})
	if passes(t, a, b, "removed") {
		t.Error("a packet passes a half that was removed")
	}
	if _, err := c.Sockets(t.Context(), "ns/c/a", Device, 1); err == nil {
		t.Error("sockets on a half that was removed")
	}
	if left, err := c.List(t.Context()); err != nil || len(left) != 1 || left[0].Name != "ns/c/b" {
		t.Errorf("the server has %+v: %v", left, err)
	}
	apply(t, c, nil, true)
	awaitKept(t, dir, 0)
	kill(server)
	kill(keeper)
}

// anyNumber waits only until the keeper answers.
const anyNumber = -1

// awaitKept waits until the keeper has so many namespaces.
func awaitKept(t *testing.T, dir string, want int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		there, err := Kept(t.Context(), dir)
		if err == nil && (len(there) == want || want == anyNumber) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the keeper has %d namespaces, not %d: %v", len(there), want, err)
		}
	}
}
