// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/manifest"
)

// aChain has a link on one node, and a link between two.
func aChain() *Chain {
	var c Chain
	c.Metadata.Name, c.Spec = "f1", json.RawMessage(`{"functions":[{"name":"a","ports":[{"name":"near","face":"native"},{"name":"far","face":"native"}]},
		{"name":"b","ports":[{"name":"near","face":"native"}]},{"name":"c","ports":[{"name":"far","face":"native"}]}],
		"links":[{"name":"near","ends":["a.near","b.near"]},{"name":"far","ends":["a.far","c.far"]}]}`)
	c.Status.Links = []Link{
		{Name: "near", Transport: "shm", Ends: []End{{Function: "a", Port: "near", Pod: "a-0", Node: "n1"}, {Function: "b", Port: "near", Pod: "b-0", Node: "n1"}}, Requirements: []Condition{
			{Type: "latency", Status: isTrue}, {Type: "min_bitrate", Status: "Unknown"},
		}},
		{Name: "far", Transport: "vxlan", Ends: []End{{Function: "a", Port: "far", Pod: "a-0", Node: "n1"}, {Function: "c", Port: "far", Pod: "c-0", Node: "n2"}}, Requirements: []Condition{
			{Type: "latency", Status: isTrue, Message: "required: x; measured: seen"}, {Type: "packet_loss_ratio", Status: isTrue},
		}},
	}
	return &c
}

// as is the chain with these links as their copy.
func (c *Chain) as(links ...Link) *Chain {
	copied := *c
	copied.Status.Links = links
	return &copied
}

// TestConditionsAreMeasured: what the nodes see counts only for delays between nodes.
func TestConditionsAreMeasured(t *testing.T) {
	undecided := func(link, requirement string) verdict.Verdict {
		return verdict.Verdict{Link: link, Requirement: requirement, Verdict: verdict.NotMeasurable, Direction: "a → b", Reason: "too busy"}
	}
	c := aChain()
	judged := func(link string, all ...verdict.Verdict) []Condition {
		links, err := c.Measured(c.as(c.Status.Links...), all)
		if err != nil {
			t.Fatal(err)
		}
		return c.as(links...).Link(link).Requirements
	}
	near := judged("near", undecided("near", "latency"), undecided("far", "latency"), verdict.Verdict{Link: "near", Requirement: "min_bitrate", Verdict: verdict.Missed})
	if len(near) != 2 || near[0].Status != "Unknown" || !strings.Contains(near[0].Message, "a → b: because: too busy") || near[1].Status != isFalse {
		t.Errorf("on one node: %+v", near)
	}
	far := judged("far", undecided("far", "latency"), undecided("far", "packet_loss_ratio"))
	if len(far) != 2 || far[0].Status != isTrue || far[0].Message != "required: x; measured: seen" || far[1].Status != "Unknown" {
		t.Errorf("between nodes: %+v", far)
	}
	met := judged("far", verdict.Verdict{Link: "far", Requirement: "packet_loss_ratio", Verdict: verdict.Missed})
	if met[0].Status != isFalse || met[1].Status != "Unknown" || met[1].Message != "required: x; because: no link like this one was measured, because its pods started or moved meanwhile; needs: another run" {
		t.Errorf("a verdict, and none: %+v", met)
	}
}

// TestPlacedPlanIsOfTheCopy, and gives no reason that holds on one node only.
func TestPlacedPlanIsOfTheCopy(t *testing.T) {
	as := aChain()
	p := &plan.Plan{Chain: "f1-dray-verify", Host: "n1", Functions: []plan.Function{{Name: "a"}, {Name: "c"}}}
	for _, name := range []string{"near", "far"} {
		p.Links = append(p.Links, plan.Link{Name: name, Reason: "fastest on one node", Rejected: []plan.Rejected{{Transport: "veth"}}, Evidence: []plan.Evidence{{Requirement: "latency"}}})
	}
	placed(p, &StandIn{Of: "f1", Chain: "f1-dray-verify"}, as)
	near, far := p.Links[0], p.Links[1]
	if p.Chain != "f1" || p.Host != "n1, n2" || p.Functions[0].Host != "n1" || p.Functions[1].Host != "n2" {
		t.Errorf("%+v", p)
	}
	if near.Reason != "fastest on one node" || len(near.Evidence) != 1 || far.Reason != "its ends are on different nodes" || far.Rejected != nil || far.Evidence != nil {
		t.Errorf("%+v and %+v", near, far)
	}
}

// TestEnvironmentIsOfTheSender's node, whose load and system are not known.
func TestEnvironmentIsOfTheSender(t *testing.T) {
	nodes := []fleet.Node{{Name: "n0"}}
	for name, kernel := range map[string]string{"n1": "6.1", "n2": "6.12"} {
		nodes = append(nodes, fleet.Node{Name: name, Inventory: &inventory.Inventory{Host: inventory.Host{Kernel: kernel, OS: "an image", Load1: 3}}})
	}
	for function, kernel := range map[string]string{"a": "6.1", "c": "6.12", "none": ""} {
		if env := environment(aChain().nodeOf(function), &plan.Plan{}, nodes); env.Kernel != kernel || env.LoadBefore != 0 || env.OS != "" || env.Dray == "" {
			t.Errorf("%s: %+v", function, env)
		}
	}
}

// TestReportedNodes have the pods of the copy, and what they have published.
func TestReportedNodes(t *testing.T) {
	calibration := []inventory.Calibration{{Transport: "shm"}}
	n := fleet.Node{Name: "n1", Inventory: &inventory.Inventory{Host: inventory.Host{CPUModel: "c", CPUs: []int{0, 1}}, Calibration: calibration, Transports: []inventory.Transport{
		{Item: inventory.Item{Name: "shm", Status: inventory.OK}}, {Item: inventory.Item{Name: "ovs", Status: inventory.Missing}},
	}}}
	got := ReportedNode(n, Machine{"containerd://2", "Debian"}, 3)
	if got.CPUModel != "c" || got.CPUs != 2 || got.Runtime != "containerd://2" || got.OS != "Debian" || got.Pods != 3 || len(got.Transports) != 1 || len(got.Calibration) != 1 {
		t.Errorf("%+v", got)
	}
	if got := ReportedNode(fleet.Node{Name: "n2", Fault: "broken"}, Machine{}, 0); got.Fault != "broken" || got.Transports == nil || got.Calibration == nil {
		t.Errorf("%+v", got)
	}
}

// TestInstancesShareMeasurements: of links between the same nodes, one is measured. What was measured is shown.
func TestInstancesShareMeasurements(t *testing.T) {
	c := aChain()
	c.Spec = json.RawMessage(`{"functions":[{"name":"hub","ports":[{"name":"w","face":"native"}]},{"name":"worker","instances":4,"ports":[{"name":"hub","face":"native"}]}],
		"links":[{"name":"w","ends":["hub.w","worker.hub"],"requires":{"latency":"1ms"}}]}`)
	worker := func(i, pod, node string) Link {
		l := Link{Name: "w-" + i, Transport: "t-" + node, Ends: []End{{"hub", "w-" + i, "hub", "n1", ""}, {"worker-" + i, "hub", pod, node, ""}}}
		l.Requirements = []Condition{{Type: "latency", Status: "Unknown"}}
		return l
	}
	c.Status.Links = []Link{worker("0", "a", "n1"), worker("1", "b", "n2"), worker("2", "c", "n2"), {Name: "w-3", Idle: true}}
	own, err := manifest.Parse("f1", c.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := placesOf(c, manifest.Declared(own)[1]); !slices.Equal(got, []place{{"worker-0", "n1"}, {"worker-1", "n2"}}) {
		t.Errorf("pods of the copy: %+v", got)
	}
	// The operator gives the copy's pods its instances in an order of its own.
	of := func(link string, word verdict.Word) verdict.Verdict {
		return verdict.Verdict{Link: link, Requirement: "latency", Verdict: word}
	}
	copied := c.as(worker("0", "copy-1", "n2"), worker("1", "copy-0", "n1"), Link{Name: "w-2", Idle: true})
	links, err := c.Measured(copied, []verdict.Verdict{of("w-0", verdict.Missed), of("w-1", verdict.Met)})
	if err != nil || len(links) != 4 || !links[3].Idle {
		t.Fatalf("%v: %+v", err, links)
	}
	for i, want := range []struct{ name, status, pod string }{{"w-0", isTrue, "copy-0"}, {"w-1", isFalse, "copy-1"}, {"w-2", isFalse, "copy-1"}} {
		if l := links[i]; l.Name != want.name || len(l.Requirements) != 1 || l.Requirements[0].Status != want.status || l.Ends[1].Pod != want.pod {
			t.Errorf("%+v, want %+v", l, want)
		}
	}
}

// TestMeasuredLinks have pods at both ends, of whatever kind, and the transport that they have now.
func TestMeasuredLinks(t *testing.T) {
	c := aChain()
	links := []plan.Link{{Name: "near", Transport: "planned"}, {Name: "far", Transport: "planned"}, {Name: "none"}}
	if got := running(c, links); len(got) != 2 || got[0].Transport != "shm" || got[1].Transport != "vxlan" {
		t.Errorf("%+v", got)
	}
	c.Status.Links[0].Ends[1].Pod = ""
	if got := running(c, links); len(got) != 1 || got[0].Name != "far" {
		t.Errorf("a link without a pod: %+v", got)
	}
}

func TestNamesOfCopies(t *testing.T) {
	for of, want := range map[string]string{"f1": "f1-dray-verify", "exactly-twenty-chars": "exactly-twenty-chars-dray-verify"} {
		if got := standInName(of); got != want {
			t.Errorf("%s: %s", of, got)
		}
	}
	a, b := standInName("a-chain-with-a-very-long-name-01"), standInName("a-chain-with-a-very-long-name-02")
	if a == b || len(a) > 32 || !strings.HasPrefix(a, "a-chain-wit") || !strings.HasSuffix(a, "-dray-verify") || strings.Contains(a, "--") {
		t.Errorf("%s, %s", a, b)
	}
}

// TestACopyHasNativePorts in place of dpdk ones, but for those of DPDK's own devices, and everything else of the chain.
func TestACopyHasNativePorts(t *testing.T) {
	const text = `{"functions":[{"instances":2,"name":"a","ports":[{"face":"dpdk","name":"m"},{"face":"dpdk","mtu":1600,"name":"p"}]},` +
		`{"name":"b","ports":[{"face":"dpdk","name":"m"},{"face":"netdev","name":"q"}]}],"links":[{"ends":["a.m","b.m"],"isolation":"no-peer-memory","name":"n3"},{"ends":["a.p","c.p"],"name":"n6"}]}`
	for transport, own := range map[string]bool{"ovs-dpdk": true, "ovs-dpdk-vxlan": true, "memif": true, "shm": false, "vxlan": false} {
		for _, name := range []string{"n3", "n3-0"} {
			c := &Chain{Spec: json.RawMessage(text)}
			c.Status.Links = []Link{{Name: name, Transport: transport}, {Name: "n6", Transport: "shm"}}
			spec, err := copiedSpec(c, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Replace(text, `"dpdk","mtu"`, `"native","mtu"`, 1)
			if !own {
				want = strings.ReplaceAll(text, `"dpdk"`, `"native"`)
			}
			if got, err := json.Marshal(spec); err != nil || string(got) != want {
				t.Errorf("%s, %s: %v: %s", transport, name, err, got)
			}
		}
	}
}

// TestACopyAsksForNoPlacement: its pods name the nodes of the chain's.
func TestACopyAsksForNoPlacement(t *testing.T) {
	spec, err := copiedSpec(&Chain{Spec: json.RawMessage(`{"placement":{},"functions":[{"name":"a","host":"n1","cpus":1,"memory":"1Gi","split":2}]}`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(spec); err != nil || string(got) != `{"functions":[{"name":"a","split":2}]}` {
		t.Errorf("%v: %s", err, got)
	}
}

// TestACopyIsBounded: its pods end by themselves, and all of it goes with the chain.
func TestACopyIsBounded(t *testing.T) {
	s := StandIn{Namespace: "ran", Chain: "f1-dray-verify", Of: "f1", uid: "u1", Life: 90 * time.Minute}
	text, err := json.Marshal(s.pod("f1-dray-verify-du", "du", "n2", "example.org/draygen:1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"activeDeadlineSeconds":5400`, `"uid":"u1"`, `"name":"f1-dray-verify-du"`, `"resourceClaimTemplateName":"f1-dray-verify-du"`, `"values":["n2"]`, `"image":"example.org/draygen:1"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the pod lacks %s: %s", want, text)
		}
	}
}

// TestTheEnvironmentHasThePlannedQdiscs: a ceiling is tested by a sender that its bucket holds back.
func TestTheEnvironmentHasThePlannedQdiscs(t *testing.T) {
	bucket := chain.Qdisc{Kind: "tbf", Rate: 30e6, Burst: 80 << 10, Latency: 20e6}
	own := bucket
	own.Rate = 10e6
	inPort := bucket
	inPort.Child = &chain.Qdisc{Kind: "bfifo", Limit: 1e5}
	p := &plan.Plan{Links: []plan.Link{
		{Shape: &bucket, Ends: []plan.End{{Function: "a", Port: "far"}, {Function: "c", Port: "far", Shape: &own}}},
		{Ends: []plan.End{{Function: "a", Port: "near"}}},
		{Shape: &inPort, Ends: []plan.End{{Function: "a", Port: "shm", Backend: plan.BackendShm}}},
	}}
	got := environment("", p, nil).Qdiscs
	if want := map[string]string{"a.far": "tbf rate 30Mbps burst 80Ki latency 20ms", "c.far": "tbf rate 10Mbps burst 80Ki latency 20ms",
		"a.shm": "tbf rate 30Mbps burst 80Ki over bfifo limit 100000, as ordered in user space"}; !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestProgramsOfAnImage: what an image lacks is said, and each pod is asked once.
func TestProgramsOfAnImage(t *testing.T) {
	dir := t.TempDir()
	script := `#!/bin/sh
echo "$*" >>` + dir + `/calls
case "$*" in
*"-- /draygen --version") echo "draygen 0.2.0" ;;
*) echo 'OCI runtime exec failed: stat /usr/bin/iperf3: no such file or directory' >&2; exit 1 ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	p := programs{&Kubectl{}, &StandIn{}, map[string]instrument.FarProgram{}}
	l := plan.Link{Traffic: chain.TrafficTCP, Ends: []plan.End{{Function: "a", Port: "far", Face: chain.FaceNetdev}}}
	var f *instrument.Far
	for range 2 {
		f = p.far(context.Background(), l, l.Ends[0], End{Pod: "a-0", Node: "n1"})
	}
	if own := f.Programs["draygen"]; f.Machine != "n1" || own.Missing != nil || own.Version != "0.2.0" {
		t.Errorf("%+v", own)
	}
	const want = "the image of draygen has no /usr/bin/iperf3: build it on a machine with DPDK and iperf3 (make images)"
	if tcp := f.Programs["iperf3"]; tcp.Missing == nil || tcp.Missing.Error() != want {
		t.Errorf("%+v", tcp)
	}
	if calls, err := os.ReadFile(filepath.Join(dir, "calls")); err != nil || strings.Count(string(calls), "\n") != 2 {
		t.Errorf("%v: %s", err, calls)
	}
}
