// SPDX-License-Identifier: Apache-2.0

package switchd

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/kube/internal/nodeswitch"
	"github.com/drayage/dray/test/testenv"
)

const someDir = "/run/dray/k8s/switch"

// some is a link that a switch can have.
func some(name string, ends ...int) nodeswitch.Link {
	l := nodeswitch.Link{Name: name, MTU: 1450}
	for _, end := range ends {
		l.Ports = append(l.Ports, nodeswitch.Port{End: end, Door: nodeswitch.DoorOf(someDir, name, end)})
	}
	return l
}

func crossing(name string) nodeswitch.Link {
	l := some(name, 1)
	l.Tunnel, l.Peer = true, &nodeswitch.Peer{Addr: netip.MustParseAddr("192.0.2.7"), VNI: 9}
	return l
}

func TestWhatIsNoLinkIsRefused(t *testing.T) {
	for _, l := range []nodeswitch.Link{some("a", 0), some("a", 1, 0), crossing("a")} {
		if err := check(someDir, &l); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
	for why, change := range map[string]func(*nodeswitch.Link){
		"no name":            func(l *nodeswitch.Link) { l.Name = "" },
		"a long name":        func(l *nodeswitch.Link) { l.Name = strings.Repeat("a", maxName+1) },
		"no MTU":             func(l *nodeswitch.Link) { l.MTU = 0 },
		"a large MTU":        func(l *nodeswitch.Link) { l.MTU = nodeswitch.MaxMTU + 1 },
		"no port":            func(l *nodeswitch.Link) { l.Ports = nil },
		"three ports":        func(l *nodeswitch.Link) { l.Ports = append(l.Ports, some("a", 0, 1).Ports...) },
		"an end twice":       func(l *nodeswitch.Link) { l.Ports = some("a", 1, 1).Ports },
		"an end of its own":  func(l *nodeswitch.Link) { l.Ports[0].End = 2 },
		"queues":             func(l *nodeswitch.Link) { l.Ports[0].Queues = maxQueues + 1 },
		"a door elsewhere":   func(l *nodeswitch.Link) { l.Ports[0].Door = "/run/docker.sock" },
		"a door above":       func(l *nodeswitch.Link) { l.Ports[0].Door = someDir + "/../net/control.sock" },
		"a peer by IPv6":     func(l *nodeswitch.Link) { l.Peer.Addr = netip.MustParseAddr("2001:db8::1") },
		"a peer of no place": func(l *nodeswitch.Link) { l.Peer.Addr = netip.Addr{} },
		"a large number":     func(l *nodeswitch.Link) { l.Peer.VNI = 1 << 24 },
	} {
		l := crossing("a")
		if change(&l); check(someDir, &l) == nil {
			t.Errorf("%s: accepted", why)
		}
	}
}

func TestLinksKeepTheirNumbers(t *testing.T) {
	first := merge(nil, []nodeswitch.Link{crossing("a"), some("b", 0, 1)}, true)
	if first[0].VNI == 0 || first[1].VNI != 0 {
		t.Fatalf("%+v", first)
	}
	second := merge(first, []nodeswitch.Link{crossing("c"), crossing("a")}, false)
	if len(second) != 3 || second[0].Name != "a" || second[0].VNI != first[0].VNI || second[2].VNI == second[0].VNI || second[2].VNI == 0 {
		t.Errorf("%+v", second)
	}
	third := merge(second, []nodeswitch.Link{some("a", 0)}, true)
	if len(third) != 1 || third[0].VNI != 0 {
		t.Errorf("%+v", third)
	}
}

func TestTheJournalIsReadAsItWasWritten(t *testing.T) {
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	if got, err := load(dir, log); err != nil || got != nil {
		t.Errorf("without a journal: %+v, %v", got, err)
	}
	here := crossing("a")
	here.Ports[0].Door = nodeswitch.DoorOf(dir, "a", 1)
	want := merge(nil, []nodeswitch.Link{here, some("of another directory", 0)}, true)
	if err := store(dir, want); err != nil {
		t.Fatal(err)
	}
	if got, err := load(dir, log); err != nil || !reflect.DeepEqual(got, want[:1]) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestADamagedJournalIsSetAside: the switch starts, and its links are made again.
func TestADamagedJournalIsSetAside(t *testing.T) {
	for name, damage := range testenv.Damages(`{"links":[]}`) {
		for _, file := range []string{"journal.json", "journal.json.new", "journal.json.damaged"} {
			dir := t.TempDir()
			want := crossing("a")
			want.Ports[0].Door = nodeswitch.DoorOf(dir, "a", 1)
			damage(t, filepath.Join(dir, file))
			damage(t, journal(dir))
			said := &strings.Builder{}
			got, err := load(dir, slog.New(slog.NewTextHandler(said, nil)))
			if _, kept := os.Lstat(journal(dir) + ".damaged"); err != nil || got != nil || kept != nil || !strings.Contains(said.String(), "journal.json.damaged") {
				t.Errorf("%s is %s: %+v, %v, %v; it said %s", file, name, got, err, kept, said)
			}
			if err := store(dir, merge(nil, []nodeswitch.Link{want}, true)); err != nil {
				t.Errorf("%s is %s: %v", file, name, err)
			}
			if got, err := load(dir, slog.Default()); err != nil || len(got) != 1 {
				t.Errorf("%s is %s: then %+v, %v", file, name, got, err)
			}
		}
	}
}

// TestAJournalThatCannotBeReadNowIsKept: the switch has the links of the last one.
func TestAJournalThatCannotBeReadNowIsKept(t *testing.T) {
	dir := t.TempDir()
	want := crossing("a")
	want.Ports[0].Door = nodeswitch.DoorOf(dir, "a", 1)
	testenv.Must(t, store(dir, merge(nil, []nodeswitch.Link{want}, true)))
	end := testenv.Unreadable(t, journal(dir))
	if got, err := load(dir, slog.Default()); err == nil {
		t.Errorf("%+v", got)
	}
	end()
	if got, err := load(dir, slog.Default()); err != nil || len(got) != 1 {
		t.Errorf("later: %+v, %v", got, err)
	}
}

func TestFlows(t *testing.T) {
	learning := some("a", 0, 1)
	learning.Learning = true
	for _, c := range []struct {
		link nodeswitch.Link
		want []string
	}{
		{some("a", 1, 0), []string{"in_port=1,actions=output:2", "in_port=2,actions=output:1"}},
		{crossing("a"), []string{"in_port=2,actions=output:3", "in_port=3,actions=output:2"}},
		{some("a", 0), nil},
		{learning, []string{"actions=NORMAL"}},
	} {
		if got := flows(&entry{Link: c.link}); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.link, got, c.want)
		}
	}
}

// A link that no longer crosses has no tunnel, and one that does has no second port.
func TestArgumentsRemoveWhatIsNotWanted(t *testing.T) {
	w, u := &ovs{o: Options{Run: "/run/o", Port: 4789}}, &underlay{addr: netip.MustParseAddr("192.0.2.1")}
	here, far := &entry{Link: some("a", 0, 1)}, &entry{Link: crossing("a"), VNI: 5}
	for _, c := range []struct {
		e       *entry
		has, no string
	}{
		{here, "del-port " + here.id() + " " + here.tunnelName(), "vxlan"},
		{far, "del-port " + far.id() + " " + far.portName(0), "add-port " + far.id() + " " + far.portName(0)},
		{far, "options:remote_ip=192.0.2.7 options:in_key=5 options:out_key=9 options:dst_port=4789", "del-port " + far.id() + " " + far.tunnelName()},
	} {
		text := strings.Join(w.arguments(c.e, u), " ")
		if !strings.Contains(text, c.has) || strings.Contains(text, c.no) {
			t.Errorf("%s\nlacks %q, or has %q", text, c.has, c.no)
		}
	}
}

func TestRoutes(t *testing.T) {
	table := `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	0100FEA9	0003	0	0	0	00000000	0	0	0
eth0	0100FEA9	00000000	0005	0	0	0	FFFFFFFF	0	0	0
net1	0000000A	00000000	0001	0	0	0	000000FF	0	0	0
eth0	0000000B	00000000	0201	0	0	0	000000FF	0	0	0
eth0	xyz
`
	want := []route{
		{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParseAddr("169.254.0.1")},
		{to: netip.MustParsePrefix("169.254.0.1/32")},
	}
	if got := parseRoutes(table, "eth0"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestOptions(t *testing.T) {
	good := Options{Dir: "a", Run: "b", Device: "eth0", Port: Port, Memory: leastMemory}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for why, change := range map[string]func(*Options){
		"no directory": func(o *Options) { o.Dir = "" }, "no interface": func(o *Options) { o.Device = "" },
		"no port": func(o *Options) { o.Port = 0 }, "little memory": func(o *Options) { o.Memory-- },
	} {
		o := good
		if change(&o); o.check() == nil {
			t.Errorf("%s: accepted", why)
		}
	}
}

// A link that Open vSwitch does not remove is tried again, also if no link is wanted any more.
func TestARemovalThatFailsIsRepeated(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "tool")
	const refusesOnce = `#!/bin/sh
case $* in
*list-br) [ -e "$0.removed" ] || echo lbad ;;
*del-br*) [ ! -e "$0.refused" ] || exec touch "$0.removed"; touch "$0.refused"; echo busy >&2; exit 1 ;;
esac
`
	testenv.Must(t, os.WriteFile(tool, []byte(refusesOnce), 0o700))
	var said strings.Builder
	s := &server{
		o:   Options{Log: slog.New(slog.NewTextHandler(&said, nil))},
		ovs: &ovs{tools: map[string]string{"ovs-vsctl": tool, "ovs-ofctl": tool, "ovs-appctl": tool}}, underlay: &underlay{},
		vswitchd: &process{running: t.Context()}, kick: make(chan struct{}, 1), turn: make(chan struct{}),
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.work(ctx) }()
	await(t, func() string {
		if _, err := os.Stat(tool + ".removed"); err != nil {
			return "the link is left"
		}
		return ""
	})
	stop()
	<-ended
	if text := said.String(); strings.Count(text, "busy") != 1 {
		t.Errorf("it said %s", text)
	}
}
