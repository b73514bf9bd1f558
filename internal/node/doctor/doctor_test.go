// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/process"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// item answers a probe with itself.
type item inventory.Item

func (i item) Probe(context.Context) inventory.Item { return inventory.Item(i) }

// driver and engine return preset answers; the tests call nothing else.
type driver struct {
	transport.Driver
	answer item
}

func (d driver) Probe(ctx context.Context) inventory.Item { return d.answer.Probe(ctx) }
func (d driver) Caps() inventory.Caps                     { return inventory.Caps{Rank: 7} }

type engine struct {
	runtime.Runtime
	answer item
}

func (e engine) Probe(ctx context.Context) inventory.Item { return e.answer.Probe(ctx) }

var (
	veth = item{Name: "veth", Status: inventory.OK}
	ovs  = item{Name: "ovs", Status: inventory.Missing, Reason: "ovs-vswitchd is not installed", Fix: "apt-get install openvswitch-switch"}
	runc = item{Name: "runc", Status: inventory.OK, Version: "1.1.5"}
	ping = item{Name: "ping", Status: inventory.OK, Version: "20221126"}
)

func TestInspect(t *testing.T) {
	testenv.Root(t)
	inv, err := Inspect(context.Background(), []transport.Driver{driver{answer: veth}, driver{answer: ovs}},
		[]runtime.Runtime{engine{answer: runc}}, []Prober{ping})
	if err != nil {
		t.Fatal(err)
	}
	if len(inv.Host.CPUs) == 0 || inv.Interfaces == nil {
		t.Errorf("host %+v, interfaces %v", inv.Host, inv.Interfaces)
	}
	if len(inv.Transports) != 2 || inv.Transports[0].Name != "veth" || inv.Transports[1].Item != inventory.Item(ovs) || inv.Transports[0].Caps.Rank != 7 {
		t.Errorf("transports %+v", inv.Transports)
	}
	if len(inv.Protections) != 2 || inv.Protections[0].Name != "bells" {
		t.Errorf("protections %+v", inv.Protections)
	}
	if len(inv.Runtimes) != 1 || inv.Runtimes[0].Version != "1.1.5" || len(inv.Instruments) != 1 || inv.Instruments[0].Name != "ping" {
		t.Errorf("runtimes %+v, instruments %+v", inv.Runtimes, inv.Instruments)
	}
	for i, kind := range host.QdiscKinds() {
		q := inv.Qdiscs[i]
		if q.Name != kind || q.Status == inventory.Missing && (q.Reason == "" || q.Fix == "") {
			t.Errorf("qdisc %s: %+v", kind, q)
		}
	}
}

// TestInspectCutShort: an inventory from cancelled probes is an error.
func TestInspectCutShort(t *testing.T) {
	testenv.Root(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Inspect(ctx, nil, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func known() *inventory.Inventory {
	return &inventory.Inventory{
		Host: inventory.Host{
			Hostname: "pop-1", Kernel: "6.1.0-18-amd64", OS: "Debian GNU/Linux 12 (bookworm)", Arch: "amd64",
			CPUModel: "Some CPU", CPUs: []int{0, 1, 2, 3}, Isolated: []int{2, 3}, Governor: "performance", NUMANodes: 1,
			MemoryTotal: 8 << 30, MemoryFree: 6<<30 + 500<<20, Load1: 0.25, Cgroup: "v2",
			HugePages: []inventory.HugePg{{Size: 2 << 20, Total: 512, Free: 500}, {Size: 1 << 30}},
		},
		Transports:  []inventory.Transport{{Item: inventory.Item(veth)}, {Item: inventory.Item(ovs)}},
		Runtimes:    []inventory.Item{inventory.Item(runc)},
		Protections: protections(true, nil),
		Qdiscs:      []inventory.Item{{Name: "tbf", Status: inventory.OK}, {Name: "hfsc", Status: inventory.Missing, Reason: "first line\nsecond\tline"}},
		Instruments: []inventory.Item{inventory.Item(ping)},
		Interfaces:  []inventory.Interface{{Name: "eth0", Kind: "device", MTU: 1500, Up: true}, {Name: "eth1", Kind: "device", MTU: 9000}},
	}
}

func TestRecall(t *testing.T) {
	dir := t.TempDir()
	fresh := known()
	if err := Recall(fresh, dir); err != nil {
		t.Fatal(err)
	}
	for _, i := range []inventory.Item{fresh.Transports[0].Item, fresh.Runtimes[0], fresh.Qdiscs[0], fresh.Instruments[0]} {
		if i.Status != inventory.NeverRun || i.Reason == "" {
			t.Errorf("on a fresh machine: %+v", i)
		}
	}
	if fresh.Transports[1].Item != inventory.Item(ovs) {
		t.Errorf("a missing item became %+v", fresh.Transports[1].Item)
	}

	if err := SaveCalibration(CalibrationFile(dir), sample()); err != nil {
		t.Fatal(err)
	}
	// Another group's namesake does not count.
	if err := MarkRun(dir, Transports.Key("veth"), Runtimes.Key("runc"), Transports.Key("ping"), Transports.Key("ovs")); err != nil {
		t.Fatal(err)
	}
	used := known()
	if err := Recall(used, dir); err != nil {
		t.Fatal(err)
	}
	if used.Transports[0].Status != inventory.OK || used.Runtimes[0].Status != inventory.OK || used.Instruments[0].Status != inventory.NeverRun ||
		used.Transports[1].Status != inventory.Missing || len(used.Calibration) != 2 {
		t.Errorf("%+v", used)
	}

	if err := os.WriteFile(CalibrationFile(dir), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := known()
	if err := Recall(broken, dir); err != nil || len(broken.Calibration) > 0 {
		t.Errorf("a malformed calibration: %+v, %v", broken.Calibration, err)
	}
	if fault := broken.CalibrationFault; !strings.Contains(fault, CalibrationFile(dir)) || !strings.Contains(fault, "dray calibrate") {
		t.Errorf("a malformed calibration went unnoticed: %q", fault)
	}
}

func TestMarkRun(t *testing.T) {
	dir := t.TempDir()
	var marking sync.WaitGroup
	for i := 0; i < 8; i++ {
		marking.Add(1)
		go func() {
			defer marking.Done()
			if err := MarkRun(dir, "transport/veth", Qdiscs.Key(strings.Repeat("x", i+1))); err != nil {
				t.Error(err)
			}
		}()
	}
	marking.Wait()
	path := filepath.Join(dir, ranFile)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := MarkRun(dir, "transport/veth", "qdisc/xx"); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Errorf("known keys were written again:\n%s", after)
	}
	keys, err := ran(dir)
	if err != nil || len(keys) < 9 {
		t.Errorf("keys %v, %v", keys, err)
	}
	for _, bad := range []string{"", "a\nb"} {
		if err := MarkRun(dir, bad); err == nil {
			t.Errorf("marked %q", bad)
		}
	}
	if err := MarkRun(filepath.Join(dir, "no-such"), "transport/veth"); err == nil {
		t.Error("marked in a directory that does not exist")
	}
}

// TestMarkRunAfterTornLine: a crash in the middle of a line loses only that line.
func TestMarkRunAfterTornLine(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ranFile), []byte("transport/veth\ntransport/br"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 2; i++ {
		if err := MarkRun(dir, "transport/bridge"); err != nil {
			t.Fatal(err)
		}
	}
	inv := &inventory.Inventory{Transports: []inventory.Transport{{Item: inventory.Item(veth)}, {Item: inventory.Item{Name: "bridge", Status: inventory.OK}}}}
	if err := Recall(inv, dir); err != nil {
		t.Fatal(err)
	}
	for _, tr := range inv.Transports {
		if tr.Status != inventory.OK {
			t.Errorf("%+v", tr.Item)
		}
	}
}

func TestText(t *testing.T) {
	busy := known()
	busy.Host.CPUs, busy.Host.Isolated, busy.Host.Governor = []int{0}, nil, "powersave"
	busy.Host.Load1, busy.Host.Virtual, busy.Host.Realtime = 3, "KVM", true
	busy.Host.HugePages, busy.Interfaces, busy.Host.NUMANodes = nil, nil, 2
	busy.Transports[0].Status = inventory.NeverRun
	busy.Calibration, busy.Protections = sample(), protections(false, &host.Unsupported{What: "options", Why: "no cgroup v2 hierarchy is mounted", Fix: "mount one"})
	for name, inv := range map[string]*inventory.Inventory{"fine": known(), "busy": busy} {
		var b bytes.Buffer
		if err := Text(&b, inv, 0); err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if b.String() != string(want) {
			t.Errorf("%s, to accept: go test ./internal/node/doctor -update\n%s", golden, b.String())
		}
	}
	if err := Text(failing{}, known(), 0); err == nil {
		t.Error("a write that failed went unnoticed")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWarnings(t *testing.T) {
	good := inventory.Host{CPUs: []int{0, 1, 2, 3}, Isolated: []int{3}, Governor: "performance", Load1: 0.1, Time: time.Now()}
	if w := Warnings(good); len(w) > 0 {
		t.Errorf("a good host: %q", w)
	}
	for want, spoil := range map[string]func(*inventory.Host){
		"1 core":            func(h *inventory.Host) { h.CPUs = []int{2} },
		"no isolated cores": func(h *inventory.Host) { h.Isolated = nil },
		"governor":          func(h *inventory.Host) { h.Governor = "performance,powersave" },
		"busy":              func(h *inventory.Host) { h.Load1 = 2 },
		"virtual machine":   func(h *inventory.Host) { h.Virtual = "KVM" },
		"emulated":          func(h *inventory.Host) { h.Virtual = inventory.VirtualTCG },
	} {
		h := good
		spoil(&h)
		if w := Warnings(h); len(w) != 1 || !strings.Contains(w[0], want) {
			t.Errorf("%s: %q", want, w)
		}
	}
}

// namedDriver is a driver with a name, which notes that it is tried.
type namedDriver struct {
	driver
	caps  inventory.Caps
	tried *[]string
}

func (d namedDriver) Name() string         { return d.answer.Name }
func (d namedDriver) Caps() inventory.Caps { return d.caps }
func (d namedDriver) Probe(ctx context.Context) inventory.Item {
	*d.tried = append(*d.tried, d.answer.Name)
	return d.answer.Probe(ctx)
}

// TestAChainNeedsOnlyWhatItMayUse: nothing else is tried, for it may hang.
func TestAChainNeedsOnlyWhatItMayUse(t *testing.T) {
	for _, test := range []struct {
		transport string
		rank      int
		tried     bool
	}{{"veth", 7, true}, {chain.TransportAuto, 7, true}, {chain.TransportAuto, -1, false}, {"ovs", 7, false}} {
		c := &chain.Chain{
			Functions: []chain.Function{{Name: "a", Runtime: chain.RuntimeProcess}},
			Links:     []chain.Link{{Name: "ab", Transport: test.transport}},
		}
		var tried []string
		d := namedDriver{driver{answer: veth}, inventory.Caps{Rank: test.rank}, &tried}
		inv, err := InspectFor(context.Background(), c, []transport.Driver{d}, []runtime.Runtime{engine{Runtime: process.New(), answer: item{Name: "process"}}, hanging{}})
		if err != nil {
			t.Fatal(err)
		}
		got := inv.Transports[0].Item
		if len(tried) == 1 != test.tried || (got == inventory.NotNeeded("veth")) == test.tried {
			t.Errorf("%+v: tried %v, %+v", test, tried, got)
		}
		if inv.Runtimes[0].Name != "process" || inv.Runtimes[1] != inventory.NotNeeded(string(chain.RuntimeDocker)) {
			t.Errorf("runtimes %+v", inv.Runtimes)
		}
	}
	if item := inventory.NotNeeded("x"); !item.Usable() {
		t.Errorf("what was not tried may work: %+v", item)
	}
}

// hanging is an engine that the chain does not use.
type hanging struct{ runtime.Runtime }

func (hanging) Name() chain.RuntimeName              { return chain.RuntimeDocker }
func (hanging) Probe(context.Context) inventory.Item { return inventory.Item{Name: "asked"} }
