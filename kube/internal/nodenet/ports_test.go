// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// podsOf is where the pods of a test have their namespaces.
func podsOf(dir string) string { return filepath.Join(filepath.Dir(dir), "pods") }

// node is a server and a keeper, with pods.
type node struct {
	t   *testing.T
	dir string
	ns  *os.File
	Client
}

// newNode starts a server and a keeper.
func newNode(t *testing.T) *node {
	t.Helper()
	testenv.Root(t)
	t.Cleanup(func() { removeGroup(t) })
	ns, err := host.NewNetns()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	n := &node{t: t, dir: filepath.Join(t.TempDir(), "net"), ns: ns}
	n.Client = Client{n.dir}
	if err := os.MkdirAll(podsOf(n.dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return n
}

// pod makes the namespace of a pod.
func (n *node) pod(name string) host.Netns {
	n.t.Helper()
	ns := host.Netns{Path: filepath.Join(podsOf(n.dir), name)}
	if err := host.CreateNetns(ns.Path); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { n.end(ns) })
	return ns
}

// end ends a pod: its namespace goes.
func (n *node) end(ns host.Netns) {
	_ = unix.Unmount(ns.Path, 0)
	_ = os.Remove(ns.Path)
}

// interfaceOf is a port of the test's link, in a pod.
func interfaceOf(t *testing.T, end int, pod host.Netns) Port {
	return Port{End: end, MAC: mac(t, "02:00:00:00:00:0"+string(rune('a'+end))), Interface: &Interface{
		Name: "f1u", IP: netip.PrefixFrom(portAddress(end), 24), Netns: pod.Path,
	}}
}

func portAddress(end int) netip.Addr { return netip.AddrFrom4([4]byte{10, 38, 0, byte(1 + end)}) }

// udp passes a packet from a pod to another, or reports that it does not.
func udp(t *testing.T, from, to host.Netns, text string) bool {
	t.Helper()
	var in, out *net.UDPConn
	at := &net.UDPAddr{IP: portAddress(1).AsSlice(), Port: 7}
	if err := to.Do(func() (err error) { in, err = net.ListenUDP("udp4", at); return err }); err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := from.Do(func() (err error) { out, err = net.DialUDP("udp4", nil, at); return err }); err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	buffer := make([]byte, 100)
	for range 1500 { // a bridge may need a second until it forwards
		_, _ = out.Write([]byte(text))
		_ = in.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if n, err := in.Read(buffer); err == nil && string(buffer[:n]) == text {
			return true
		}
	}
	return false
}

// state is what a pod sees of its interface. The index says whether it is the same one.
func stateIn(t *testing.T, pod host.Netns) host.LinkState {
	t.Helper()
	s, err := pod.ReadLink("f1u")
	if err != nil {
		t.Fatal(err)
	}
	s.Peer, s.Carrier, s.Addrs = 0, false, s.Addrs[:min(1, len(s.Addrs))] // the other end may change; IPv6 adds its own
	return s
}

func (n *node) made(h Half) Made {
	n.t.Helper()
	made := apply(n.t, n.Client, []Half{h}, true)
	if len(made) != 1 || made[0].Error != "" || len(made[0].Faults) > 0 {
		n.t.Fatalf("%+v", made)
	}
	return made[0]
}

// The interface of a pod stays as it is while the server dies and the other pod moves away
// and back.
func TestInterfacesOfPods(t *testing.T) {
	n := newNode(t)
	keeper, server := start(t, "keeper", n.dir, n.ns), start(t, "server", n.dir, n.ns)
	a, b := n.pod("a"), n.pod("b")
	both := Half{Name: "ns/c/l", MTU: 1500, Tunnel: TunnelNone, Ports: []Port{interfaceOf(t, 0, a), interfaceOf(t, 1, b)}}
	if m := n.made(both); m.VNI != 0 {
		t.Errorf("a tunnel for two pods of one node: %+v", m)
	}
	was := stateIn(t, a)
	if was.MAC.String() != "02:00:00:00:00:0a" || was.MTU != 1500 || !was.Up || !reflect.DeepEqual(was.Addrs, []netip.Prefix{netip.MustParsePrefix("10.38.0.1/24")}) {
		t.Errorf("the interface: %+v", was)
	}
	if !udp(t, a, b, "first") {
		t.Fatal("nothing passes")
	}
	if text := sysctl(t, a, "accept_ra"); text != "0" {
		t.Errorf("the pod takes routes from the other end: accept_ra is %s", text)
	}

	kill(server)
	if !udp(t, a, b, "without a server") {
		t.Error("nothing passes without a server")
	}
	server = start(t, "server", n.dir, n.ns)
	n.made(both)
	unknown := both // as a dray-node says that has just started
	unknown.Tunnel, unknown.Ports = TunnelKept, []Port{interfaceOf(t, 0, host.Netns{}), interfaceOf(t, 1, host.Netns{})}
	if m := n.made(unknown); m.VNI != 0 {
		t.Errorf("a tunnel that nobody wants: %+v", m)
	}
	if now := stateIn(t, a); !reflect.DeepEqual(now, was) || !udp(t, a, b, "another server") {
		t.Errorf("after the server died: %+v, not %+v", now, was)
	}

	n.end(b)
	apart := Half{Name: "ns/c/l", MTU: 1500, Ports: []Port{interfaceOf(t, 0, a)}}
	first := n.made(apart)
	if first.VNI == 0 {
		t.Errorf("no tunnel: %+v", first)
	}
	unknown.Ports = unknown.Ports[:1]
	if m := n.made(unknown); !reflect.DeepEqual(m, first) {
		t.Errorf("while nobody knows where the peer is: %+v, not %+v", m, first)
	}
	kill(server)
	server = start(t, "server", n.dir, n.ns)
	if m := n.made(apart); !reflect.DeepEqual(m, first) {
		t.Errorf("the next server has %+v, not %+v", m, first)
	}
	b = n.pod("b")
	both.Ports[1] = interfaceOf(t, 1, b)
	if m := n.made(both); m.VNI != 0 || !udp(t, a, b, "back") {
		t.Errorf("when the pod is back: %+v", m)
	}
	if now := stateIn(t, a); !reflect.DeepEqual(now, was) {
		t.Errorf("the interface of the pod that stayed: %+v, not %+v", now, was)
	}

	apply(t, n.Client, nil, true)
	if names, err := a.Interfaces(); err != nil || len(names) != 0 {
		t.Errorf("left in the pod: %s, %v", names, err)
	}
	kill(server)
	kill(keeper)
}

// A tunnel between two nodes joins their pods.
func TestInterfacesAcrossATunnel(t *testing.T) {
	n := newNode(t)
	server := start(t, "server", n.dir, n.ns)
	a, b := n.pod("a"), n.pod("b")
	halves := []Half{
		{Name: "ns/c/a", MTU: 1500, Ports: []Port{interfaceOf(t, 0, a)}},
		{Name: "ns/c/b", MTU: 1500, Ports: []Port{interfaceOf(t, 1, b)}},
	}
	made := applied(t, n.Client, halves)
	for i := range halves {
		other := 1 - i
		halves[i].Peer = &Peer{MAC: halves[other].Ports[0].MAC, Addr: netip.MustParseAddr(nodeAddress), VNI: made[other].VNI}
	}
	if again := applied(t, n.Client, halves); !reflect.DeepEqual(again, made) {
		t.Errorf("with the peers: %+v, not %+v", again, made)
	}
	if !udp(t, a, b, "across") {
		t.Error("nothing passes")
	}
	kill(server)
}

// A native port and an interface are on one link: the application gets its packets by a
// socket, and the pod knows its address without asking.
func TestANativePortAndAnInterface(t *testing.T) {
	n := newNode(t)
	server := start(t, "server", n.dir, n.ns)
	a := n.pod("a")
	own := interfaceOf(t, 0, a)
	own.Interface.Opposite = &Neighbour{IP: portAddress(1), MAC: mac(t, "02:00:00:00:00:0b"), DPDK: true}
	half := Half{Name: "ns/c/l", MTU: 1500, Tunnel: TunnelNone, Ports: []Port{own, {End: 1, MAC: mac(t, "02:00:00:00:00:0b")}}}
	n.made(half)
	testenv.Must(t, a.SetOffload("f1u", "tx-checksum", true)) // as an older version left it
	n.made(half)
	fds, err := n.Sockets(t.Context(), "ns/c/l", PortDevice(1), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(fds)
	if text, err := a.Offloads("f1u"); err != nil || !strings.Contains(text, "tso off, gso off") || !strings.Contains(text, "tx-checksum off") {
		t.Errorf("the kernel leaves to a DPDK application what it does not do: %s, %v", text, err)
	}
	var out net.Conn
	if err := a.Do(func() (err error) { out, err = net.Dial("udp4", portAddress(1).String()+":7"); return err }); err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	got := false
	buffer := make([]byte, 2000)
	for tries := 0; !got && tries < 1500; tries++ {
		_, _ = out.Write([]byte("to a native port"))
		time.Sleep(20 * time.Millisecond)
		for size, err := unix.Read(fds[0], buffer); err == nil; size, err = unix.Read(fds[0], buffer) {
			got = got || strings.Contains(string(buffer[:size]), "to a native port")
		}
	}
	if !got {
		t.Error("nothing passes")
	}
	for _, device := range []string{"br0", "end0", "lo", Device, "port0"} {
		if fds, err := n.Sockets(t.Context(), "ns/c/l", device, 1); err == nil {
			closeAll(fds)
			t.Errorf("sockets on %s", device)
		}
	}
	kill(server)
}

// Nothing but the namespace of a pod is touched, and nothing of the pod's own.
func TestHostileNamespaces(t *testing.T) {
	n := newNode(t)
	server := start(t, "server", n.dir, n.ns)
	dir := podsOf(n.dir)
	a := n.pod("a")
	nodes := filepath.Join(dir, "node")
	if err := os.WriteFile(nodes, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(host.OfFile(n.ns).Path, nodes, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.end(host.Netns{Path: nodes}) })
	pid := filepath.Join(dir, "pid")
	if err := os.WriteFile(pid, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("/proc/self/ns/pid", pid, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.end(host.Netns{Path: pid}) })
	for name, make := range map[string]func(string) error{
		"link": func(p string) error { return os.Symlink(a.Path, p) },
		"file": func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"pipe": func(p string) error { return unix.Mkfifo(p, 0o600) },
	} {
		if err := make(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, why := range map[string]string{
		nodes:                   "the node itself",
		pid:                     "not a network namespace",
		dir + "/link":           "too many levels",
		dir + "/file":           "not a namespace",
		dir + "/pipe":           "not a namespace",
		dir + "/absent":         "no such file",
		dir + "/../pods/node":   "the node itself",
		dir + "/..":             "not in",
		"/proc/self/ns/net":     "not in",
		"a":                     "not in",
		"/proc/1/root/" + "run": "not in",
	} {
		made := apply(t, n.Client, []Half{{Name: "ns/c/l", MTU: 1500, Tunnel: TunnelNone, Ports: []Port{interfaceOf(t, 0, host.Netns{Path: path})}}}, true)
		if len(made) != 1 || !strings.Contains(made[0].Faults[0], why) {
			t.Errorf("%s: %+v", path, made)
		}
	}
	if names, err := host.OfFile(n.ns).Interfaces(); err != nil || strings.Join(names, " ") != "line eth0" && strings.Join(names, " ") != "eth0 line" {
		t.Errorf("the node has %s, %v", names, err)
	}

	if err := host.CreateVeth(host.Iface{Netns: a, Name: "f1u", MTU: 1500}, host.Iface{Netns: a, Name: "x", MTU: 1500}); err != nil {
		t.Fatal(err)
	}
	made := apply(t, n.Client, []Half{{Name: "ns/c/l", MTU: 1500, Tunnel: TunnelNone, Ports: []Port{interfaceOf(t, 0, a)}}}, true)
	if !strings.Contains(made[0].Faults[0], "give the port another name") {
		t.Errorf("an interface of the pod has the name: %+v", made)
	}
	for _, p := range []Port{{End: 2}, {End: -1}, {MAC: "02:00:00:00:00:0a", Interface: &Interface{Name: "../x"}}, {MAC: "02:00:00:00:00:0a", Interface: &Interface{Name: "Ab"}}} {
		if made := apply(t, n.Client, []Half{{Name: "ns/c/l", MTU: 1500, Ports: []Port{p}}}, true); !strings.Contains(made[0].Error, "not a port") {
			t.Errorf("%+v: %+v", p, made)
		}
	}
	kill(server)
}

// sysctl reads a setting of the pod's interface.
func sysctl(t *testing.T, pod host.Netns, name string) string {
	t.Helper()
	var text []byte
	err := pod.Do(func() (err error) {
		text, err = os.ReadFile("/proc/sys/net/ipv6/conf/f1u/" + name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
