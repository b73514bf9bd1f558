// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	cnitypes "github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/kube/internal/cni"
	"github.com/drayage/dray/test/testenv"
)

// node is dray-node's side with the plugin's directory; pod a has interfaces, if it has a claim.
type node struct {
	t      *testing.T
	dir    string
	served *CNI
	h      *handler
	of     []cni.Interface
	stop   func()
}

var f1u = cni.Interface{Name: "f1u", MAC: "02:00:00:00:00:01", MTU: 1600, IP: "10.38.0.1/24"}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, dir: t.TempDir(), h: &handler{events: make(chan string, 100)}, of: []cni.Interface{f1u, {Name: "n3", MAC: "02:00:00:00:00:02", MTU: 1500}}}
	n.start()
	return n
}

func (n *node) start() {
	n.t.Helper()
	n.served = NewCNI(n.dir, func(pod types.UID) ([]cni.Interface, error) {
		if pod == "a" {
			return n.of, nil
		}
		return nil, nil
	}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(n.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.served.Run(ctx, n.h)
	}()
	n.stop = func() {
		cancel()
		<-done
	}
	n.t.Cleanup(n.stop)
	if known := <-n.h.events; known != "known" {
		n.t.Fatal(known)
	}
	for range 3000 { // a file may be there before anybody listens
		if conn, err := net.Dial("unix", cni.Socket(n.dir)); err == nil {
			_ = conn.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	n.t.Fatal("nobody listens")
}

// chained is the configuration of a plugin in a chain; the one before it has made eth0.
const chained = `{"cniVersion":"1.1.0","name":"pods","type":"dray-cni","prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"eth0","sandbox":"/ns"}],"ips":[{"interface":0,"address":"10.0.0.2/24"}]}}`

// alone is one that is in no chain.
const alone = `{"cniVersion":"1.1.0","name":"ran","type":"dray-cni"}`

// call calls a verb of the plugin for a pod, and returns what it prints.
func (n *node) call(verb func(cni.Plugin) func(*skel.CmdArgs) error, conf, pod, container, ifname string) (*current.Result, error) {
	n.t.Helper()
	var out bytes.Buffer
	args := ""
	if pod != "" {
		args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=ran;K8S_POD_UID=" + pod
	}
	err := verb(cni.Plugin{Dir: n.dir, Devices: filepath.Join(n.dir, "devices"), Out: &out})(&skel.CmdArgs{ContainerID: container, Netns: "/ns", IfName: ifname, Args: args, StdinData: []byte(conf)})
	if err != nil || out.Len() == 0 {
		return nil, err
	}
	var r current.Result
	return &r, json.Unmarshal(out.Bytes(), &r)
}

func add(p cni.Plugin) func(*skel.CmdArgs) error   { return p.Add }
func del(p cni.Plugin) func(*skel.CmdArgs) error   { return p.Del }
func check(p cni.Plugin) func(*skel.CmdArgs) error { return p.Check }
func gc(p cni.Plugin) func(*skel.CmdArgs) error    { return p.GC }
func ready(p cni.Plugin) func(*skel.CmdArgs) error { return p.Status }

// names are the interfaces of a result, each with its addresses.
func names(r *current.Result) (all []string) {
	for i, in := range r.Interfaces {
		text := in.Name
		for _, ip := range r.IPs {
			if *ip.Interface == i {
				text += " " + ip.Address.String()
			}
		}
		all = append(all, text)
	}
	return all
}

// A pod gets its interfaces at ADD, next to those that it has; its namespace is known from
// then until DEL, also to another instance of dray-node.
func TestAPodByCNI(t *testing.T) {
	n := newNode(t)
	must(t, n.served.Expect(t.Context(), "a"))
	if at := n.served.Netns("a"); at != "" {
		t.Errorf("before ADD it is in %q", at)
	}
	r, err := n.call(add, chained, "a", "c1", "eth0")
	must(t, err)
	if got, want := names(r), []string{"eth0 10.0.0.2/24", "f1u 10.38.0.1/24", "n3"}; !slices.Equal(got, want) || r.Interfaces[1].Sandbox != "/ns" || r.Interfaces[1].Mac != f1u.MAC || r.Interfaces[1].Mtu != 1600 {
		t.Errorf("%q, not %q: %+v", got, want, r.Interfaces)
	}
	n.stop()
	n.expect("starts a")
	n.start()
	must(t, n.served.Expect(t.Context(), "a"))
	if at := n.served.Netns("a"); at != "/ns" {
		t.Errorf("another instance finds it in %q", at)
	}
	for _, container := range []string{"an earlier sandbox", "c1", "c1"} {
		_, err = n.call(del, chained, "a", container, "eth0")
		must(t, err)
	}
	n.expect("stopped a")
	if at := n.served.Netns("a"); at != "" {
		t.Errorf("after DEL it is in %q", at)
	}
}

func (n *node) expect(events ...string) {
	n.t.Helper()
	if got := n.h.happened(); !slices.Equal(got, events) {
		n.t.Errorf("happened: %q, not %q", got, events)
	}
}

// Pods without interfaces of ours, and the network as a whole, never depend on dray-node.
func TestOtherPodsNeedNoDrayNode(t *testing.T) {
	n := newNode(t)
	n.stop()
	for name, pod := range map[string]string{"a pod": "b", "no pod": ""} {
		r, err := n.call(add, chained, pod, "c1", "eth0")
		if err != nil || !slices.Equal(names(r), []string{"eth0 10.0.0.2/24"}) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
		for verb, f := range map[string]func(cni.Plugin) func(*skel.CmdArgs) error{"DEL": del, "CHECK": check, "STATUS": ready} {
			if _, err := n.call(f, chained, pod, "c1", "eth0"); err != nil {
				t.Errorf("%s of %s: %v", verb, name, err)
			}
		}
	}
	must(t, n.served.Expect(t.Context(), "a"))
	_, err := n.call(add, chained, "a", "c1", "eth0")
	var e *cnitypes.Error
	if !errors.As(err, &e) || e.Code != cnitypes.ErrTryAgainLater || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("ADD of a pod with interfaces: %v", err)
	}
	if _, err := n.call(del, chained, "a", "c1", "eth0"); err != nil {
		t.Errorf("DEL of it: %v", err)
	}
}

// Outside a chain, as under Multus, a network gives a pod the port of its interface's name.
func TestOneInterfaceByCNI(t *testing.T) {
	n := newNode(t)
	must(t, n.served.Expect(t.Context(), "a"))
	r, err := n.call(add, alone, "a", "c1", "n3")
	must(t, err)
	if got := names(r); !slices.Equal(got, []string{"n3"}) {
		t.Errorf("%q", got)
	}
	for pod, text := range map[string]string{"a": "it has f1u, n3", "b": "it has none"} {
		if _, err := n.call(add, alone, pod, "c1", "net1"); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("pod %s: %v", pod, err)
		}
	}
}

// A device with a socket is no interface: plugins in a chain do not see it. Under Multus, its network
// gets the socket, and the file that tells applications of it.
func TestADeviceWithASocketByCNI(t *testing.T) {
	n := newNode(t)
	must(t, n.served.Expect(t.Context(), "a"))
	const path = "/run/dray/links/n3/memif.sock"
	devices := filepath.Join(n.dir, "devices")
	conf := func(file string) string {
		return strings.TrimSuffix(alone, "}") + fmt.Sprintf(`,"runtimeConfig":{"CNIDeviceInfoFile":%q}}`, file)
	}
	for device, want := range map[cni.Device]string{
		{Type: cni.Memif, Path: path, Listens: true}:     `{"type":"memif","version":"1.1.0","memif":{"role":"master","path":"` + path + `","mode":"ethernet"}}`,
		{Type: cni.Memif, Path: path}:                    `{"type":"memif","version":"1.1.0","memif":{"role":"slave","path":"` + path + `","mode":"ethernet"}}`,
		{Type: cni.VhostUser, Path: path, Listens: true}: `{"type":"vhost-user","version":"1.1.0","vhost-user":{"mode":"server","path":"` + path + `"}}`,
		{Type: cni.VhostUser, Path: path}:                `{"type":"vhost-user","version":"1.1.0","vhost-user":{"mode":"client","path":"` + path + `"}}`,
	} {
		n.of[1].Device = &device
		if r, err := n.call(add, chained, "a", "c1", "eth0"); err != nil || !slices.Equal(names(r), []string{"eth0 10.0.0.2/24", "f1u 10.38.0.1/24"}) {
			t.Errorf("%+v, in a chain: %v, %v", device, r, err)
		}
		file := filepath.Join(devices, "ran-pod-n3")
		r, err := n.call(add, conf(file), "a", "c1", "n3")
		if err != nil || len(r.Interfaces) != 1 || r.Interfaces[0].SocketPath != path {
			t.Errorf("%+v: %+v, %v", device, r, err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%+v: %s, %v", device, got, err)
		}
		must(t, os.Remove(file))
		if _, err := n.call(add, alone, "a", "c1", "n3"); err != nil {
			t.Errorf("without the capability: %v", err)
		}
	}
	// Users of the cluster write such configurations.
	for _, file := range []string{"/etc/passwd", devices, devices + "/../x", devices + "/a/b", devices + "/.x", "x", devices + "//x"} {
		if _, err := n.call(add, conf(file), "a", "c1", "n3"); err == nil || !strings.Contains(err.Error(), "is not in "+devices) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if left, err := os.ReadDir(devices); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A pod that is refused has no namespace, and what dray-node says reaches its events.
func TestCNIRefuses(t *testing.T) {
	n := newNode(t)
	must(t, n.served.Expect(t.Context(), "a"))
	n.h.refuse = errors.New("look at the pod dray-net")
	if _, err := n.call(add, chained, "a", "c1", "eth0"); err == nil || !strings.Contains(err.Error(), "look at the pod dray-net") {
		t.Errorf("%v", err)
	}
	n.expect("starts a", "stopped a")
	if at := n.served.Netns("a"); at != "" {
		t.Errorf("it is in %q", at)
	}
	for name, conf := range map[string]string{
		"half a file":   `{"cniVersion":`,
		"a bad result":  `{"cniVersion":"1.1.0","name":"pods","type":"dray-cni","prevResult":{"cniVersion":"1.1.0","ips":"none"}}`,
		"another shape": `[]`,
	} {
		if _, err := n.call(add, conf, "a", "c1", "eth0"); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if _, err := n.call(add, chained, "../../etc/passwd", "c1", "eth0"); err == nil || !strings.Contains(err.Error(), "not a UID") {
		t.Errorf("a pod's UID that is a path: %v", err)
	}
}

// GC ends the sandboxes that a network does not name any more, and no others.
func TestCNICollects(t *testing.T) {
	n := newNode(t)
	must(t, n.served.Expect(t.Context(), "a"))
	_, err := n.call(add, chained, "a", "c1", "eth0")
	must(t, err)
	n.expect("starts a")
	valid := func(network, container string) string {
		return fmt.Sprintf(`{"cniVersion":"1.1.0","name":%q,"type":"dray-cni","cni.dev/valid-attachments":[{"containerID":%q,"ifname":"eth0"}]}`, network, container)
	}
	for _, conf := range []string{valid("pods", "c1"), valid("another", "c2")} {
		_, err := n.call(gc, conf, "", "", "")
		must(t, err)
		n.expect()
	}
	_, err = n.call(gc, valid("pods", "c2"), "", "", "")
	must(t, err)
	n.expect("stopped a")
}

// Records of pods without a claim go, but not at once: a claim may be on its way.
func TestStaleRecords(t *testing.T) {
	n := newNode(t)
	for _, pod := range []types.UID{"a", "b"} {
		must(t, n.served.Expect(t.Context(), pod))
	}
	must(t, n.served.removeStale(time.Now()))
	if got, err := n.served.pods(); err != nil || len(got) != 2 {
		t.Errorf("at once: %q, %v", got, err)
	}
	must(t, n.served.removeStale(time.Now().Add(2*collectEvery)))
	if got, err := n.served.pods(); err != nil || !reflect.DeepEqual(got, []types.UID{"a"}) {
		t.Errorf("later: %q, %v", got, err)
	}
	must(t, os.WriteFile(filepath.Join(n.dir, "a.json"), []byte("half"), 0o600))
	if at := n.served.Netns("a"); at != "" {
		t.Errorf("a record that is damaged: %q", at)
	}
}

// CHECK finds an interface that is missing or that somebody has changed.
func TestCheck(t *testing.T) {
	testenv.Root(t)
	n := newNode(t)
	must(t, n.served.Expect(t.Context(), "a"))
	conf := strings.Replace(chained, `"sandbox":"/ns"}`, `"sandbox":"/proc/thread-self/ns/net"},{"name":"f1u","sandbox":"/proc/thread-self/ns/net"}`, 1)
	verify := func(ns host.Netns, name, text string) {
		t.Helper()
		must(t, ns.Do(func() error { // the thread is in that namespace
			err := cni.Plugin{Dir: n.dir}.Check(&skel.CmdArgs{ContainerID: "c1", Netns: "/proc/thread-self/ns/net", IfName: "eth0", Args: "K8S_POD_UID=a", StdinData: []byte(conf)})
			if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v", name, err)
			}
			return nil
		}))
	}
	must(t, host.InThrowawayNetns(func(ns host.Netns) error {
		verify(ns, "no interface", "interface f1u")
		mac, err := net.ParseMAC(f1u.MAC)
		must(t, err)
		must(t, host.CreateVeth(host.Iface{Netns: ns, Name: "f1u", MAC: mac, MTU: 1600}, host.Iface{Netns: ns, Name: "other", MTU: 1600}))
		verify(ns, "down", "interface f1u is down")
		must(t, ns.SetUp("f1u"))
		verify(ns, "no address", "interface f1u has lost its address 10.38.0.1/24")
		must(t, ns.AddAddr("f1u", netip.MustParsePrefix(f1u.IP)))
		verify(ns, "as it should be", "") // n3 is not in prevResult
		n.of[0].MTU = 1500
		verify(ns, "another MTU", "interface f1u has an MTU of 1600, not 1500")
		return nil
	}))
}

// A damaged record is set aside and named. The pod's next sandbox gets its interfaces, and no other pod waits.
func TestADamagedRecordIsSetAside(t *testing.T) {
	for name, damage := range testenv.Damages(`{"pod":{"uid":"a"}}`) {
		for _, suffix := range []string{"", ".new", damagedSuffix} {
			dir, said := t.TempDir(), &bytes.Buffer{}
			c := NewCNI(dir, func(types.UID) ([]cni.Interface, error) { return nil, nil }, slog.New(slog.NewTextHandler(said, nil)))
			ctx := context.Background()
			testenv.Must(t, errors.Join(c.Expect(ctx, "a"), c.Expect(ctx, "b")))
			testenv.Must(t, write(filepath.Join(dir, "b.json"), cni.Attachment{Pod: "b", Netns: "/run/netns/b"}))
			damage(t, filepath.Join(dir, "a.json"+suffix))
			for range 2 {
				if a, b := c.Netns("a"), c.Netns("b"); a != "" || b != "/run/netns/b" {
					t.Errorf("%s, %q: namespaces %q and %q", name, suffix, a, b)
				}
			}
			if n := strings.Count(said.String(), "pod=a"); suffix == "" && n != 1 || suffix != "" && n != 0 {
				t.Errorf("%s, %q: it said %s", name, suffix, said)
			}
			h := &handler{events: make(chan string, 9)}
			if _, err := c.add(ctx, h, cni.Attachment{Pod: "a", Netns: "/run/netns/a"}); err != nil || c.Netns("a") != "/run/netns/a" {
				t.Errorf("%s, %q: the next sandbox: %v, %q", name, suffix, err, c.Netns("a"))
			}
			damage(t, filepath.Join(dir, "a.json"+suffix))
			if err := c.removeStale(time.Now().Add(time.Hour)); err != nil {
				t.Errorf("%s, %q: %v", name, suffix, err)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "a.json*")); err != nil || len(left) > 0 {
				t.Errorf("%s, %q: %v are left, %v", name, suffix, left, err)
			}
		}
	}
}

// A damaged record is never missing: without a new one, dray-cni would pass over the pod's next
// sandbox. That holds if there is no room for the new one.
func TestADamagedRecordStaysUntilThereIsANewOne(t *testing.T) {
	testenv.Root(t)
	dir := t.TempDir()
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "nr_inodes=2")) // the directory, and one file
	t.Cleanup(func() { must(t, unix.Unmount(dir, 0)) })
	c := NewCNI(dir, func(types.UID) ([]cni.Interface, error) { return nil, nil }, slog.New(slog.DiscardHandler))
	file := filepath.Join(dir, "a.json")
	testenv.Damages("")["garbage"](t, file)
	at := c.Netns("a")
	if _, err := os.Lstat(file); err != nil || at != "" {
		t.Errorf("without room for a new one: %q, %v", at, err)
	}
	must(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "nr_inodes=9"))
	if a, err := c.read("a"); err != nil || a.Pod != "" {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := c.read("a"); err != nil || a.Pod != "a" {
		t.Errorf("the new one: %+v, %v", a, err)
	}
}

// A record that cannot be read for now is kept, and DEL is tried again. So are records of pods
// whose interfaces are not known for now.
func TestARecordThatCannotBeReadNowIsKept(t *testing.T) {
	dir := t.TempDir()
	c := NewCNI(dir, func(types.UID) ([]cni.Interface, error) { return nil, unix.EMFILE }, slog.New(slog.DiscardHandler))
	a := cni.Attachment{Pod: "a", Container: "c1", Netns: "/run/netns/a"}
	file := filepath.Join(dir, "a.json")
	must(t, write(file, a))
	end := testenv.Unreadable(t, file)
	h := &handler{events: make(chan string, 9)}
	if err := c.end(h, "a", func(cni.Attachment) bool { return true }); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("DEL: %v", err)
	}
	end()
	if err := c.removeStale(time.Now().Add(time.Hour)); !errors.Is(err, unix.EMFILE) {
		t.Errorf("collect: %v", err)
	}
	if at := c.Netns("a"); at != a.Netns {
		t.Errorf("then it is in %q", at)
	}
}
