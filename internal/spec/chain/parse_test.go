// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestExamplesParse(t *testing.T) {
	files, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d examples, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if _, err := Load(file); err != nil {
				t.Error(err)
			}
		})
	}
}

// comparePrefixes lets cmp compare addresses, whose fields are private.
var comparePrefixes = cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})

// ignorePositions excludes positions from a comparison.
var ignorePositions = cmp.FilterPath(func(p cmp.Path) bool {
	name := p.Last().String()
	return name == ".Pos" || name == ".FieldPos" || name == ".File"
}, cmp.Ignore())

func TestParseFillsEveryField(t *testing.T) {
	got, err := Load("testdata/good/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ratio := units.Ratio(1e-4)
	want := &Chain{
		APIVersion: "drayage/v1", Kind: "Chain", Name: "full", Policy: Policy{OnInfeasible: Warn, Privileged: true},
		Functions: []Function{{
			Name: "cu-up", Runtime: RuntimeRunc, Rootfs: "/srv/cu-up", Command: []string{"/usr/bin/cu-up", "--workers", "2"},
			Env: map[string]string{"LOG_LEVEL": "info", "SHARDS": "2"}, CPUs: CPURequest{Count: 2}, Compute: &Compute{Share: 0.4, Deadline: 500e3}, Memory: 512 << 20, Pids: 64,
			HugePages: []HugePages{{2 << 20, 64 << 20}, {1 << 30, 1 << 30}}, Restart: RestartOnFailure, SCTP: SCTPUDP,
			Ports: []Port{
				{Name: "f1u", Face: FaceNetdev, IP: netip.MustParsePrefix("10.38.0.1/24"), MAC: "02:00:00:00:00:01", MTU: 1600, Queues: 2},
				{Name: "n3", Face: FaceNetdev, IP: netip.MustParsePrefix("fd00:3::1/64"), MTU: 1500, Queues: 1},
			},
		}, {
			Name: "du", Runtime: RuntimeDocker, Image: "registry.example/ran/du:1.2", CPUs: CPURequest{Set: []int{2, 3, 5}},
			Restart: RestartNever, Ports: []Port{{Name: "f1u", Face: FaceNetdev, MTU: 1600, Queues: 1}},
		}, {
			Name: "probe", Runtime: RuntimeProcess, Command: []string{"sleep", "infinity"}, Restart: RestartNever,
			Tuns:  []Tun{{Name: "tun0", IP: netip.MustParsePrefix("172.16.0.1/24"), MTU: 1400}, {Name: "tun1", IP: netip.MustParsePrefix("fd00:16::1/64"), MTU: 1500}},
			Ports: []Port{{Name: "n4", Face: FaceNative, MTU: 1500, Queues: 1, Hold: &Hold{Packets: 64, Beyond: BeyondCopy}}},
		}, {
			Name: "upf", Runtime: RuntimeExternal, External: &External{Container: "upf-0"}, Restart: RestartNever,
			Ports: []Port{{Name: "n3", Face: FaceNetdev, MTU: 1500, Queues: 1}, {Name: "n4", Face: FaceNative, MTU: 1500, Queues: 1}},
		}},
		Links: []Link{{
			Name: "f1u", Ends: []End{{Function: "cu-up", Port: "f1u"}, {Function: "du", Port: "f1u"}}, Transport: "veth",
			Isolation: IsolationNoSharedMemory, Traffic: TrafficTCP, Frame: 1400, Load: 400e6, HasLoad: true,
			Requires: Requires{Latency: 1500e3, Percentile: 99.9, PDV: 500e3, LossRatio: &ratio,
				MinBitrate: 1e9, MaxBitrate: 2e9, PacketRate: 100e3, MTU: 1600},
			QoS: &Qdisc{Kind: "tbf", Rate: 2e9, Burst: 64 << 10, Latency: 20e6},
		}, {
			Name: "n3", Ends: []End{{Function: "cu-up", Port: "n3"}, {Function: "upf", Port: "n3"}, {Uplink: "eth0"}},
			Transport: TransportAuto, Isolation: IsolationLink, Traffic: TrafficUDP, QoS: &Qdisc{Kind: "htb", Rate: 100e6, Ceil: 1e9, Child: &Qdisc{Kind: "fq_codel", Limit: 200}},
		}, {
			Name: "n4", Ends: []End{{Function: "probe", Port: "n4"}, {Function: "upf", Port: "n4"}},
			Transport: TransportAuto, Isolation: IsolationLink, Traffic: TrafficUDP, Messages: &Messages{Size: 4 << 20, Count: 4},
		}},
	}
	if diff := cmp.Diff(want, got, comparePrefixes, ignorePositions); diff != "" {
		t.Errorf("want (-) and got (+) differ:\n%s", diff)
	}
}

func TestParseKeepsPositions(t *testing.T) {
	c, err := Parse("c.yaml", []byte(least))
	if err != nil {
		t.Fatal(err)
	}
	l := c.Links[0]
	for _, p := range []struct {
		what string
		got  parse.Position
		want string
	}{
		{"function", c.Functions[1].Pos, "c.yaml:8:5"},
		{"function's ports", c.Functions[1].FieldPos["ports"], "c.yaml:9:12"},
		{"port", c.Functions[1].Ports[0].Pos, "c.yaml:9:13"},
		{"port's name", c.Functions[1].Ports[0].FieldPos["name"], "c.yaml:9:20"},
		{"link", l.Pos, "c.yaml:11:5"},
		{"end", l.Ends[1].Pos, "c.yaml:12:17"},
		{"latency", l.Requires.Pos["latency"], "c.yaml:13:25"},
	} {
		if p.got.String() != p.want {
			t.Errorf("%s is at %s, want %s", p.what, p.got, p.want)
		}
	}
}

func TestLoadOfZeroIsKeptApartFromNone(t *testing.T) {
	c, err := Parse("", []byte(least+"    load: 0bps\n"))
	if err != nil {
		t.Fatal(err)
	}
	if l := c.Links[0]; !l.HasLoad || l.Load != 0 {
		t.Errorf("got HasLoad %v, Load %v", l.HasLoad, l.Load)
	}
}

func TestAliasesStandForValues(t *testing.T) {
	text := strings.Replace(least, "name: a\n", "name: a\n    env: &env {A: 1}\n", 1)
	text = strings.Replace(text, "name: b\n", "name: b\n    env: *env\n", 1)
	c, err := Parse("", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Function("b").Env["A"]; got != "1" {
		t.Errorf("got %q", got)
	}
}

func TestByteOrderMarkIsIgnored(t *testing.T) {
	c, err := Parse("", []byte("\ufeff"+strings.TrimSpace(least)))
	if err != nil || c.Name != "least" {
		t.Errorf("error %v", err)
	}
}

func TestSyntaxErrorInLargeFileIsPlaced(t *testing.T) {
	text := "# " + strings.Repeat("x\n# ", 64<<10) + "\na: b: c\n" + strings.Repeat("# x\n", 1000)
	wantLine := strings.Count(text[:strings.Index(text, "a: b")], "\n") + 1
	var fault *parse.Error
	if _, err := Parse("c.yaml", []byte(text)); !errors.As(err, &fault) || fault.Pos.Line != wantLine {
		t.Errorf("got %v, want line %d", err, wantLine)
	}
}

func TestZeroBytesAreAnEmptyFile(t *testing.T) {
	_, err := Parse("c.yaml", nil)
	if err == nil || !strings.HasPrefix(err.Error(), "c.yaml:1:1: the file is empty; ") {
		t.Errorf("error %v", err)
	}
}

func TestMaximumErrorsAreShown(t *testing.T) {
	text := least + strings.Repeat("  - {name: x, ends: [a.q, b.q]}\n", 1000)
	var faults parse.Errors
	if _, err := Parse("c.yaml", []byte(text)); !errors.As(err, &faults) {
		t.Fatal("no Errors")
	}
	last := faults[len(faults)-1]
	if len(faults) > 100+1 || !strings.Contains(last.Text, "more errors are not shown") || last.Pos.Line == 0 {
		t.Errorf("%d faults, the last: %v", len(faults), last)
	}
}

func TestNamesFindParts(t *testing.T) {
	c, err := Load("testdata/good/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Function("cu-up").Port("n3"); p == nil || p.IP.String() != "fd00:3::1/64" {
		t.Errorf("cu-up.n3 is %v", p)
	}
	if c.Function("none") != nil || c.Function("du").Port("none") != nil {
		t.Error("an unknown name found something")
	}
}

func TestNumberOfCPUs(t *testing.T) {
	for want, r := range []CPURequest{{}, {Count: 1}, {Set: []int{4, 7}}} {
		if got := r.Number(); got != want {
			t.Errorf("%+v asks for %d, want %d", r, got, want)
		}
	}
}

func TestEndsPrintAsTheyAreNamed(t *testing.T) {
	if got := (End{Function: "a", Port: "p"}).String(); got != "a.p" {
		t.Errorf("got %q", got)
	}
	if got := (End{Uplink: "eth0"}).String(); got != "uplink:eth0" {
		t.Errorf("got %q", got)
	}
}

func TestErrorsUnwrapToError(t *testing.T) {
	_, err := Parse("c.yaml", []byte("kind: Pod\n"))
	var fault *parse.Error
	if !errors.As(err, &fault) || fault.Pos.Line != 1 {
		t.Errorf("got %v", fault)
	}
}

func TestChainSurvivesJSON(t *testing.T) {
	want, err := Load("testdata/good/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, throughJSON(t, want), comparePrefixes, ignorePositions, ignoreHasLoad); diff != "" {
		t.Errorf("before (-) and after (+) differ:\n%s", diff)
	}
}

// ignoreHasLoad: JSON carries only the load itself.
var ignoreHasLoad = cmp.Options{cmpopts.IgnoreFields(Link{}, "HasLoad"), cmpopts.IgnoreFields(Path{}, "HasLoad")}

func throughJSON(t testing.TB, c *Chain) *Chain {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var out Chain
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return &out
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ path, want string }{
		{filepath.Join(dir, "none.yaml"), "no such file or directory"},
		{dir, "is a directory; name the file in it"},
		{"/dev/zero", "larger than the limit of 1Mi; "},
	} {
		if _, err := Load(c.path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.path, err, c.want)
		}
	}
}

func TestLargeFileIsNotRead(t *testing.T) {
	// A sparse file far larger than memory shows that Load does not read it.
	file := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 1<<40); err != nil {
		t.Skip("no sparse files here: ", err)
	}
	_, err := Load(file)
	if err == nil || !strings.HasPrefix(err.Error(), file+": the file is larger than the limit of 1Mi; ") {
		t.Errorf("error %v", err)
	}
}

// TestMemoryOfMachines: huge pages for DPDK applications add to the rest.
func TestMemoryOfMachines(t *testing.T) {
	for _, test := range []struct {
		fields     string
		pages, all units.Bytes
	}{
		{"ports: [{name: p}]", 0, 512 << 20},
		{"ports: [{name: p, face: dpdk}]", 512 << 20, 1 << 30},
		{"memory: 128Mi, hugepages: {2Mi: 64Mi}, ports: [{name: p, face: dpdk}]", 64 << 20, 448 << 20},
	} {
		text := "apiVersion: drayage/v1\nkind: Chain\nname: c\nfunctions:\n  - {name: a, runtime: vm, " + test.fields + "}\n  - {name: b, ports: [{name: q, face: dpdk}]}\n" +
			"links: [{name: l, ends: [a.p, b.q]}]\n"
		c, err := Parse("c.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if f := c.Function("a"); f.OwnPages() != test.pages || f.MachineMemory() != test.all || f.HostPages() != nil {
			t.Errorf("%s: %v of %v, and %v of the host", test.fields, f.OwnPages(), f.MachineMemory(), f.HostPages())
		}
		if f := c.Function("b"); f.OwnPages() != 0 || f.MachineMemory() != 0 {
			t.Errorf("a container has %v of %v", f.OwnPages(), f.MachineMemory())
		}
	}
}

// TestFaultsAreGrouped has more faults in one function than the limit shown, and one in
// a link.
func TestFaultsAreGrouped(t *testing.T) {
	text := "apiVersion: drayage/v1\nkind: Chain\nname: c\nfunctions:\n" +
		"  - name: du\n    runtim: runc\n    a: 1\n    b: 1\n    c: 1\n    d: 1\n    e: 1\n    f: 1\n" +
		"  - {name: cu, comand: [x]}\nlinks:\n  - name: f1\n    ends: [du.p, cu]\n"
	_, err := Parse("x.yaml", []byte(text))
	if err == nil {
		t.Fatal("no error")
	}
	got := err.Error()
	for _, want := range []string{"function du:\n  x.yaml:6:5: unknown field \"runtim\"", "\n  and 2 more\n", "\nx.yaml:13:16: ", "\nlink f1:\n  x.yaml:16:12: "} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
}
