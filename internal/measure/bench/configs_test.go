// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/matrix"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/drayage/dray/test/testenv"
)

func item(name string, status inventory.Status) inventory.Item {
	return inventory.Item{Name: name, Status: status}
}

// host is a machine with transports of every sort.
func host2() *inventory.Inventory {
	caps := func(faces ...string) inventory.Caps {
		return inventory.Caps{Faces: faces, Isolation: "no-shared-memory", MinEnds: 2, MaxEnds: 2, Privileges: "none"}
	}
	gone := item("ovs", inventory.Missing)
	gone.Reason, gone.Fix = "no ovs-vswitchd", "apt-get install openvswitch-switch"
	uplink, self := caps("netdev"), caps("netdev")
	uplink.MinEnds, uplink.MaxEnds, uplink.Uplink = 1, 1, true
	self.SameNetns = true
	return &inventory.Inventory{
		Host: inventory.Host{Hostname: "h", CPUs: []int{0, 1}, NUMANodes: 1, MemoryTotal: 8 << 30, MemoryFree: 8 << 30},
		Transports: []inventory.Transport{
			{Item: item("shm", inventory.OK), Caps: caps("native")},
			{Item: item("veth", inventory.NeverRun), Caps: caps("netdev", "native")},
			{Item: gone, Caps: caps("netdev")},
			{Item: item("af-packet", inventory.OK), Caps: uplink},
			{Item: item("loopback", inventory.OK), Caps: self},
		},
		Runtimes: []inventory.Item{item("process", inventory.OK), item("runc", inventory.OK), {Name: "docker", Status: inventory.Missing, Reason: "no daemon", Fix: "start it"}},
	}
}

func matrixOf(t *testing.T, lines string) *matrix.Matrix {
	t.Helper()
	m, err := matrix.Parse("m", []byte("apiVersion: drayage/v1\nkind: Bench\nname: m\nruntimes: [process]\n"+lines))
	testenv.Must(t, err)
	return m
}

func rowTexts(rows []report.BenchRow) []string {
	var out []string
	for _, r := range rows {
		text := r.Config.String()
		if r.Untried {
			text += " untried"
		}
		if r.Skipped != "" {
			text += ": " + r.Skipped
		}
		out = append(out, text)
	}
	return out
}

func TestRows(t *testing.T) {
	for name, c := range map[string]struct {
		matrix string
		want   []string
	}{
		"all": {"", []string{
			"shm/native/process/64/direct", "veth/netdev/process/64/direct untried", "ovs/–/–/–/–: no ovs-vswitchd",
			"af-packet/–/–/–/–: it joins a function to a host interface, not two functions", "loopback/netdev/process/64/direct",
		}},
		"faces": {"faces: [native]\ntransports: [shm, veth, loopback]\nsizes: [64, imix]\n", []string{
			"shm/native/process/64/direct", "shm/native/process/imix/direct", "veth/native/process/64/direct untried",
			"veth/native/process/imix/direct untried", "loopback/–/–/–/–: it serves only ports with face netdev",
		}},
		"runtime": {"transports: [shm]\nruntimes: [process, docker]\nimage: x\n", nil},
		"unknown": {"transports: [vxlan]\n", []string{"vxlan/–/–/–/–: this build has no such transport"}},
		"batch": {"transports: [veth, shm]\nfaces: [netdev, native]\nbatch: 1\n", []string{
			"veth/netdev/process/64/direct untried",
			"veth/native/process/64/direct: batch counts packets of a system call, and ports with face native send without system calls",
			"shm/native/process/64/direct: batch counts packets of a system call, and ports with face native send without system calls",
		}},
		"vnf": {"transports: [veth]\nvnfs: [l2fwd]\n", []string{
			"veth/netdev/process/64/l2fwd: dray-vnf is a DPDK application, and cannot use ports with face netdev",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(c.matrix, "runtimes") {
				m := matrixOf(t, strings.Replace(c.matrix, "runtimes: [process, docker]\nimage: x\n", "", 1))
				m.Runtimes = append(m.Runtimes, chain.RuntimeDocker)
				rows := Rows(m, host2())
				if len(rows) != 2 || rows[1].Skipped != "runtime docker: no daemon" || rows[1].Fix != "start it" {
					t.Errorf("%v", rowTexts(rows))
				}
				return
			}
			got := rowTexts(Rows(matrixOf(t, c.matrix), host2()))
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestFramesThatNoPortTakesAreARow(t *testing.T) {
	inv := host2()
	inv.Transports[1].Caps.MaxMTU = 1500
	rows := Rows(matrixOf(t, "transports: [veth]\nsizes: [1518, 9018]\n"), inv)
	if len(rows) != 2 || rows[0].Skipped != "" || !strings.Contains(rows[1].Skipped, "mtu 9000") || rows[1].Fix == "" {
		t.Errorf("%+v", rows)
	}
}

func TestChainsOfConfigurations(t *testing.T) {
	inv := host2()
	m := matrixOf(t, "sizes: [64, 9018]\n")
	for _, row := range Rows(m, inv) {
		if row.Skipped != "" {
			continue
		}
		c, _, p, err := prepare(m, inv, row.Config)
		if err != nil {
			t.Errorf("%s: %v", row.Config, err)
			continue
		}
		same := row.Config.Transport == "loopback"
		if got := len(c.Functions); same && got != 1 || !same && got != 2 {
			t.Errorf("%s: %d functions", row.Config, got)
		}
		if mtu := p.Links[0].MTU; row.Config.Size == "9018" && mtu != 9000 || row.Config.Size == "64" && mtu != 1500 {
			t.Errorf("%s: MTU %d", row.Config, mtu)
		}
		pinned := len(p.Functions[0].CPUs) == 1
		if native := row.Config.Face == "native"; pinned != native {
			t.Errorf("%s: pinned %v", row.Config, p.Functions[0].CPUs)
		}
	}
}

// TestShapes: one thread sends and receives if a polling switch needs a CPU that
// is missing. A VNF is between two links.
func TestShapes(t *testing.T) {
	bin := t.TempDir()
	testenv.Must(t, os.WriteFile(filepath.Join(bin, vnfProgram), nil, 0o755))
	t.Setenv("PATH", bin)
	inv := host2()
	inv.Transports = append(inv.Transports, inventory.Transport{Item: item("vhost-user", inventory.OK),
		Caps: inventory.Caps{Faces: []string{"dpdk"}, Isolation: "link", MinEnds: 2, MaxEnds: 2, Processes: 1, BusyCPUs: 1, Machines: true}})
	inv.Runtimes = append(inv.Runtimes, item("vm", inventory.OK))
	// shm's process is its broker, which sleeps.
	asleep := record.Config{Transport: "shm", Face: "native", Runtime: "process", Size: "64", VNF: "direct"}
	m := matrixOf(t, "transports: [vhost-user]\nvnfs: [direct, l2fwd]\n")
	direct := record.Config{Transport: "vhost-user", Face: "dpdk", Runtime: "process", Size: "64", VNF: "direct"}
	between := direct
	between.VNF = "l2fwd"
	gateway := direct
	gateway.VNF, gateway.Size = "bng", "72"
	machine := direct // whose stamps are all from one clock
	machine.Runtime = "vm"
	for _, c := range []struct {
		cpus             []int
		config           record.Config
		want             shape
		functions, links int
	}{
		{[]int{0, 1}, asleep, pair, 2, 1}, {[]int{0, 1}, direct, loop, 1, 1}, {[]int{0, 1, 2}, direct, pair, 2, 1}, {[]int{0, 1}, between, vnf, 2, 2},
		{[]int{0, 1}, gateway, vnf, 2, 2}, {[]int{0, 1, 2}, machine, loop, 1, 1},
	} {
		inv.Host.CPUs = c.cpus
		if got := shapeOf(inv, c.config); got != c.want {
			t.Errorf("%s on CPUs %v: shape %d, want %d", c.config, c.cpus, got, c.want)
		}
		parsed, _, _, err := prepare(m, inv, c.config)
		if err != nil || len(parsed.Functions) != c.functions || len(parsed.Links) != c.links {
			t.Errorf("%s on CPUs %v: %+v, error %v", c.config, c.cpus, parsed, err)
		}
	}
}

// TestVNFInMachine: only the VNF is in the machine. The generator is a host process,
// whose clock stamps both ways. Transports without devices for machines are refused.
func TestVNFInMachine(t *testing.T) {
	bin := t.TempDir()
	testenv.Must(t, os.WriteFile(filepath.Join(bin, vnfProgram), nil, 0o755))
	t.Setenv("PATH", bin)
	inv := host2()
	caps := inventory.Caps{Faces: []string{"dpdk"}, Isolation: "link", MinEnds: 2, MaxEnds: 2, Machines: true}
	inv.Transports = append(inv.Transports, inventory.Transport{Item: item("vhost-user", inventory.OK), Caps: caps})
	caps.Machines = false
	inv.Transports = append(inv.Transports, inventory.Transport{Item: item("memif", inventory.OK), Caps: caps})
	inv.Runtimes = append(inv.Runtimes, item("vm", inventory.OK))
	m := matrixOf(t, "transports: [vhost-user]\nvnfs: [direct, l2fwd]\n")
	c := record.Config{Transport: "vhost-user", Face: "dpdk", Runtime: "vm", Size: "64", VNF: "l2fwd"}
	if reason, _ := obstacle(m, inv, c); reason != "" {
		t.Errorf("refused: %s", reason)
	}
	parsed, _, _, err := prepare(m, inv, c)
	testenv.Must(t, err)
	got := map[string]chain.RuntimeName{}
	for _, f := range parsed.Functions {
		got[f.Name] = f.Runtime
	}
	if got[sender] != chain.RuntimeProcess || got[through] != chain.RuntimeVM || len(got) != 2 || shapeOf(inv, c) != vnf {
		t.Errorf("functions run in %v", got)
	}
	s := setup{visit: visit{config: c}, shape: vnf, runner: &Runner{Machine: &runner.Machine{Env: func(*node.Live) record.Environment { return record.Environment{} }}}}
	trial := s.complete(record.Trial{From: "a.p0", To: "a.p1"}, matrix.Load{PacketRate: 10})
	if trial.Runtimes["a.p0"] != "process" || trial.Runtimes["a.p1"] != "process" || trial.Bench.Config.Runtime != "vm" {
		t.Errorf("the record's ends run in %v, the configuration in %q", trial.Runtimes, trial.Bench.Config.Runtime)
	}
	c.Transport = "memif"
	if reason, _ := obstacle(m, inv, c); !strings.Contains(reason, "machine") {
		t.Errorf("memif is refused with %q", reason)
	}
}

// One thread as both ends is marked, unlike two with a CPU each.
func TestFewCPUsAreMarked(t *testing.T) {
	for _, c := range []struct {
		shape  shape
		cpus   []int
		marked bool
	}{
		{loop, []int{0, 1}, true}, {vnf, []int{0, 1}, true}, {pair, []int{0, 1}, false}, {alone, []int{0, 1}, false}, {vnf, []int{0, 1, 2}, false},
	} {
		env := func(*node.Live) record.Environment { return record.Environment{CPUs: c.cpus} }
		s := setup{visit: visit{config: record.Config{Runtime: "process"}}, shape: c.shape, runner: &Runner{Machine: &runner.Machine{Env: env}}}
		trial := s.complete(record.Trial{}, matrix.Load{PacketRate: 10})
		if slices.Contains(trial.Marks, record.MarkFewCPUs) != c.marked {
			t.Errorf("shape %d on CPUs %v: marks %v", c.shape, c.cpus, trial.Marks)
		}
	}
}

// TestVNFIsAwaited until it reports that its ports are up, or has ended.
func TestVNFIsAwaited(t *testing.T) {
	log := filepath.Join(t.TempDir(), "vnf.log")
	looks := 0
	begins := func(context.Context) error {
		if looks++; looks == 2 {
			return os.WriteFile(log, []byte("EAL: drivers\n{\"dray_vnf\":1,"+vnfReady+"}\n"), 0o600)
		}
		return nil
	}
	if err := awaitReady(context.Background(), log, portsUp, begins); err != nil || looks != 2 {
		t.Errorf("%v after %d looks", err, looks)
	}
	testenv.Must(t, os.Remove(log))
	ended := errors.New("exit status 1")
	if err := awaitReady(context.Background(), log, portsUp, func(context.Context) error { return ended }); !errors.Is(err, ended) {
		t.Errorf("an ended VNF: %v", err)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := awaitReady(gone, log, portsUp, func(context.Context) error { return nil }); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), vnfProgram) {
		t.Errorf("a silent VNF: %v", err)
	}
}

func TestDockerFunctionsHaveTheImage(t *testing.T) {
	inv := host2()
	inv.Runtimes[2] = item("docker", inventory.OK)
	m := matrixOf(t, "transports: [veth]\n")
	m.Runtimes, m.Image = []chain.RuntimeName{chain.RuntimeDocker}, "registry:5000/debian:12"
	rows := Rows(m, inv)
	if len(rows) != 1 || rows[0].Skipped != "" {
		t.Fatalf("%+v", rows)
	}
	c, _, _, err := prepare(m, inv, rows[0].Config)
	if err != nil || c.Functions[0].Image != m.Image || c.Functions[1].Runtime != chain.RuntimeDocker {
		t.Errorf("%+v, error %v", c, err)
	}
	// A container sees the image's programs, not the host's.
	if text, err := programCommand("l2fwd", chain.RuntimeDocker, defaultMTU, ""); err != nil || !strings.HasPrefix(text, `["dray-vnf", `) {
		t.Errorf("%s, error %v", text, err)
	}
}

func TestBaseline(t *testing.T) {
	m := matrixOf(t, "transports: [shm, veth]\n")
	rows := Rows(m, host2())
	if got := Baseline(m, rows); got != "veth" {
		t.Errorf("baseline %q", got)
	}
	if got := Baseline(m, rows[:1]); got != "shm" {
		t.Errorf("baseline %q", got)
	}
	m.Baseline = "bridge"
	if got := Baseline(m, rows); got != "bridge" {
		t.Errorf("baseline %q", got)
	}
}

func TestPacketRates(t *testing.T) {
	for _, c := range []struct {
		load matrix.Load
		size string
		want uint64
		ok   bool
	}{
		{matrix.Load{Search: matrix.LoadMax}, "64", 0, false},
		{matrix.Load{PacketRate: 10_000}, "1518", 10_000, true},
		{matrix.Load{Bitrate: 1_000_000_000}, "1518", 82_563, true}, // 1e9 / 8 / 1514
	} {
		if got, ok := packetRate(c.load, c.size); got != c.want || ok != c.ok {
			t.Errorf("%v at %s: %d, %v", c.load, c.size, got, ok)
		}
	}
}

// visitsOf are a round's visits, in drawing order.
func visitsOf(run *report.BenchRun, round int) []visit {
	return visits(run, round, rand.New(rand.NewPCG(run.Seed, uint64(round))))
}

// testRun is a run of three rounds of everything that the test machine can do.
func testRun(t *testing.T) *report.BenchRun {
	m := matrixOf(t, "loads: [max, 10kpps, ndr]\nrepetitions: 3\n")
	return &report.BenchRun{Schema: report.BenchSchema, ID: "bench-m-1", Matrix: *m, Seed: 7, Rows: Rows(m, host2()), Program: report.Program{Dray: "v1"}, Started: time.Now()}
}

func TestScheduleIsDrawnAnewAndTheSameAgain(t *testing.T) {
	run := testRun(t)
	texts := func(round int) []string {
		var out []string
		for _, v := range visitsOf(run, round) {
			if v.loads == nil {
				out = append(out, fmt.Sprintf("%s-r%d", v.ceilingName(), v.round))
			}
			for _, l := range v.loads {
				out = append(out, v.id(l))
			}
		}
		return out
	}
	first, again := strings.Join(texts(0), " "), strings.Join(texts(0), " ")
	if first != again {
		t.Error("one round has two orders")
	}
	different := false
	seen := map[string]int{}
	for round := range 3 {
		ids := texts(round)
		different = different || strings.ReplaceAll(strings.Join(ids, " "), "-r"+string(rune('0'+round)), "") != strings.ReplaceAll(first, "-r0", "")
		for _, id := range ids {
			seen[id]++
		}
	}
	if !different {
		t.Error("three rounds have one order")
	}
	// Three configurations at three loads, and the generator alone, in three rounds.
	if len(seen) != 3*(3*3+1) {
		t.Errorf("%d trials", len(seen))
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s: %d times", id, n)
		}
	}
}

func TestRemaining(t *testing.T) {
	v := visit{record.Config{Transport: "veth"}, 1, []matrix.Load{{Search: matrix.LoadMax}, {PacketRate: 10}}}
	r := &Runner{Done: map[string]bool{v.id(v.loads[0]): true}}
	if got := r.remaining(v).loads; len(got) != 1 || got[0].PacketRate != 10 {
		t.Errorf("left %v", got)
	}
}

func TestEstimateKeepsToTheMatrix(t *testing.T) {
	run := testRun(t)
	all := Estimate(run)
	run.Matrix.AtMost = units.Duration(all / 2)
	if got := Estimate(run); got != all/2 {
		t.Errorf("%v of %v with half of it", got, all)
	}
	run.Matrix.AtMost = 1
	if got := Estimate(run); got != roundTime(run) {
		t.Errorf("%v with no time: one round takes %v", got, roundTime(run))
	}
}

// TestTickOfAMachine: only the VNF's machine stops its tick, and only if it should.
func TestTickOfAMachine(t *testing.T) {
	c := record.Config{Transport: "vhost-user", Face: "dpdk", Runtime: "vm", Size: "64", VNF: "l2fwd"}
	for _, stops := range []bool{false, true} {
		f := fields{config: c, noHzFull: stops}
		if got := strings.Contains(f.function(through, ""), "vm: {nohz_full: true}"); got != stops {
			t.Errorf("nohz_full %v: %s", stops, f.function(through, ""))
		}
		if text := f.generator(); strings.Contains(text, "nohz_full") {
			t.Errorf("the generator is no machine: %s", text)
		}
	}
}
