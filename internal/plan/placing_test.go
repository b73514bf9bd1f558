// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/units"
)

// exampleWith is examples/placement.yaml with one text in place of another.
func exampleWith(t *testing.T, replace ...string) *chain.Chain {
	t.Helper()
	return exampleFile(t, "placement.yaml", replace...)
}

func exampleFile(t *testing.T, file string, replace ...string) *chain.Chain {
	t.Helper()
	text, err := os.ReadFile("../../examples/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(string(text), replace[i]) {
			t.Fatalf("the example has no %q", replace[i])
		}
	}
	c, err := chain.Parse(file, []byte(strings.NewReplacer(replace...).Replace(string(text))))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// hostsOf is "function=host" of every function.
func hostsOf(p *Plan) string {
	var all []string
	for _, f := range p.Functions {
		all = append(all, f.Name+"="+f.On)
	}
	return strings.Join(all, " ")
}

// refusal is the violation of the placement in an infeasible plan.
func refusal(t *testing.T, c *chain.Chain, inv *inventory.Inventory) Violation {
	t.Helper()
	_, err := Make(c, inv)
	var infeasible *Infeasible
	if !errors.As(err, &infeasible) || infeasible.Plan.Violations[0].Subject != "placement" {
		t.Fatalf("error %v, want a placement to be refused", err)
	}
	return infeasible.Plan.Violations[0]
}

func TestThePlannerChoosesHosts(t *testing.T) {
	c := exampleWith(t)
	before := mustJSON(t, c)
	p := mustPlan(t, c, withTunnels(t))
	if got, want := hostsOf(p), "ru=site du=edge cu-up=edge upf=core"; got != want {
		t.Errorf("placed %s, want %s", got, want)
	}
	if !bytes.Equal(before, mustJSON(t, c)) {
		t.Error("the chain changed")
	}
	for i, want := range []string{"CPU 0", "CPUs 0-3", "CPUs 4-7", "CPUs 0-11"} {
		if f := p.Functions[i]; !strings.HasSuffix(f.Reason, "; "+want+" there") {
			t.Errorf("%s is placed because %q, want %s", f.Name, f.Reason, want)
		}
	}
	for i, want := range []string{"vxlan", "veth", "vxlan"} {
		if got := p.Links[i].Transport; got != want {
			t.Errorf("%s is over %s, want %s", p.Links[i].Name, got, want)
		}
	}
	if ev := p.Links[0].Evidence[0]; ev.Expected != "235us at p50" || !strings.Contains(ev.Source, "the delay of the lines from site to edge") {
		t.Errorf("the fronthaul's latency is %+v", ev)
	}
	if !p.Placement.Optimal || p.Placement.Cost.Hosts != 3 {
		t.Errorf("the placement is %+v", p.Placement)
	}
	p.PlaceIn(c)
	if c.Functions[1].Host != "edge" {
		t.Errorf("the chain says that du is on %q", c.Functions[1].Host)
	}
	if again := mustPlan(t, c, withTunnels(t)); hostsOf(again) != hostsOf(p) {
		t.Errorf("placed again: %s", hostsOf(again))
	}
}

func TestTheSmallestRelaxationIsNamed(t *testing.T) {
	v := refusal(t, exampleWith(t, "length: 7km", "length: 15.2km"), withTunnels(t))
	if want := "latency ≤ 250us at p50 and min_bitrate ≥ 400Mbps of link fh (split 7b)"; v.Constraint != want {
		t.Errorf("the constraint is %q, want %q", v.Constraint, want)
	}
	if !strings.Contains(v.Reason, "function ru on host site and the 2 CPUs of host site") || v.Position == "" || v.Hard {
		t.Errorf("the violation is %+v", v)
	}
	if want := "5.2 km less fibre between site and edge, or split 2 instead of 7b for ru, or a latency of 276us for link fh"; !strings.HasPrefix(v.Fix, want) {
		t.Errorf("the fix is %q, want %q", v.Fix, want)
	}
	// What is proposed helps, and a little less does not.
	mustPlan(t, exampleWith(t, "length: 7km", "length: 10km"), withTunnels(t))
	refusal(t, exampleWith(t, "length: 7km", "length: 10.1km"), withTunnels(t))
	mustPlan(t, exampleWith(t, "length: 7km", "length: 15.2km", "split: 7b", "split: 2"), withTunnels(t))
	mustPlan(t, exampleWith(t, "length: 7km", "length: 15.2km", "percentile: 50,", "percentile: 50, latency: 276us,"), withTunnels(t))
}

func TestRelaxationsInTheWordsOfTheChain(t *testing.T) {
	for _, c := range []struct {
		replace []string
		hard    bool
		want    string
	}{
		{[]string{"length: 7km", "delay: 60us"}, false, "10us less delay between site and edge"},
		{[]string{"{name: core, cpus: 32", "{name: core, cpus: 10"}, true, "2 more CPUs on core"},
		{[]string{"{name: core, cpus: 32, memory: 128Gi}", "{name: core, cpus: 32, memory: 15Gi}"}, true, "1Gi more memory on core"},
		{[]string{"rate: 10Gbps, length: 7km", "rate: 100Mbps, length: 7km"}, false, "for the line from site to edge"},
		{[]string{"    cpus: 12\n", "    cpus: 12\n    host: edge\n"}, true, "another host for upf"},
		{[]string{"    cpus: 12\n", "    cpus: 0-11\n    host: edge\n"}, true, "another host or other CPUs for upf"},
		{[]string{"    cpus: 12\n", "    cpus: 40-51\n"}, true, "other CPUs for upf"},
		{[]string{"length: 7km", "length: 60km", "latency: 10ms", "latency: 1us"}, false, "no single change of a host"},
	} {
		if v := refusal(t, exampleWith(t, c.replace...), withTunnels(t)); v.Hard != c.hard || !strings.Contains(v.Fix, c.want) {
			t.Errorf("%v: hard %v, fix %q; want %v, %q", c.replace, v.Hard, v.Fix, c.hard, c.want)
		}
	}
}

// TestAShorterLineAsTheFileTakesIt: whole microseconds of the delay, and both parts of a
// line if neither is enough.
func TestAShorterLineAsTheFileTakesIt(t *testing.T) {
	for _, c := range []struct {
		line chain.HostLine
		less units.Duration
		want string
	}{
		{chain.HostLine{Delay: 100e3}, 40500, "41us less delay"},
		{chain.HostLine{Length: 7000}, 5500, "1.1 km less fibre"},
		{chain.HostLine{Delay: 60e3, Length: 7000}, 60e3, "a line with length but no delay"},
		{chain.HostLine{Delay: 60e3, Length: 7000}, 62500, "no delay and 0.5 km less fibre"},
		{chain.HostLine{Length: 7030}, 35500, "a line without delay or length"},
	} {
		if got := shorterText(c.line, c.less); got != c.want {
			t.Errorf("%v less of %+v is %q, want %q", c.less, c.line, got, c.want)
		}
	}
}

// TestTooMuchLoadIsNamed: lowering it helps, and what is allowed is never a loss of 1.
func TestTooMuchLoadIsNamed(t *testing.T) {
	c := exampleFile(t, "ran-path.yaml", "    requires: {latency", "    load: 400Tbps\n    requires: {latency")
	inv := withTunnels(t)
	inv.Host.MemoryTotal = 32 << 30
	_, err := Make(c, inv)
	var infeasible *Infeasible
	if !errors.As(err, &infeasible) {
		t.Fatal(err)
	}
	if v := infeasible.Plan.Violations[0]; v.Fix != "a lower load for path dl" {
		t.Errorf("the fix is %q", v.Fix)
	}
	if strings.Contains(err.Error(), "allow 1") || !strings.Contains(err.Error(), "lower the load, use faster links") {
		t.Error(err)
	}
	c.Paths[0].Load = 10e6
	mustPlan(t, c, inv)
	inv.Transports = nil
	if v := refusal(t, c, inv); v.Fix != "do what the links' own violations say" {
		t.Errorf("without transports the fix is %q", v.Fix)
	}
	c = exampleWith(t)
	c.Links[0].Load, c.Links[0].HasLoad = 400e12, true
	if v := refusal(t, c, withTunnels(t)); v.Fix != "a lower load for link fh" {
		t.Errorf("of a link the fix is %q", v.Fix)
	}
}

// TestMoreOfTheNodeThatNeedsIt: the larger node is not always the one that is too small.
func TestMoreOfTheNodeThatNeedsIt(t *testing.T) {
	node := func(cpus int, memory units.Bytes) chain.NUMANode {
		return chain.NUMANode{CPUs: chain.CPURequest{Count: cpus}, Memory: memory}
	}
	for want, memory := range map[string]units.Bytes{"1 more CPU on NUMA node 1 of h1": 0, "1Gi more memory on NUMA node 1 of h1": 2 << 30} {
		c := pair()
		c.Hosts = &chain.Hosts{Names: []string{"h1", "h2"}, Underlay: chain.Underlay{MTU: 1600},
			Machines: []chain.Machine{{Name: "h1", NUMA: []chain.NUMANode{node(4, 4<<30), node(2, 1<<30)}}, {Name: "h2", NUMA: []chain.NUMANode{node(1, 1<<30)}}},
			Lines:    []chain.HostLine{{Between: []string{"h1", "h2"}}}}
		for i, cpus := range []int{4, 3} {
			f := &c.Functions[i]
			f.Host, f.CPUs.Count = "h1", cpus
			if memory > 0 {
				f.CPUs.Count, f.Memory = cpus-i*2, memory
			}
		}
		if v := refusal(t, c, withTunnels(t)); !strings.Contains(v.Fix, want) {
			t.Errorf("the fix is %q, want %q", v.Fix, want)
		}
	}
}

// TestUnmetRequirementsAreFew: with on_infeasible: warn the planner still places, with as
// few unmet requirements as possible.
func TestUnmetRequirementsAreFew(t *testing.T) {
	c := exampleWith(t, "length: 7km", "length: 40km")
	c.Policy.OnInfeasible = chain.Warn
	p := mustPlan(t, c, withTunnels(t))
	if got, want := hostsOf(p), "ru=site du=edge cu-up=edge upf=core"; got != want || p.Placement.Cost.Unmet != 1 {
		t.Errorf("placed %s with %+v, want %s", got, p.Placement, want)
	}
	if len(p.Warnings) == 0 || !strings.HasPrefix(p.Warnings[len(p.Warnings)-2], "placement: ") {
		t.Errorf("the warnings are %q", p.Warnings)
	}
}

// TestSimulatedHostsShareTheMachine: without lines, hosts are simulated here, so their CPUs
// are this machine's.
func TestSimulatedHostsShareTheMachine(t *testing.T) {
	inv := withTunnels(t)
	inv.Host.CPUs = []int{0, 1, 2, 3}
	c := pair()
	c.Functions[0].CPUs.Count, c.Functions[1].CPUs.Count = 2, 2
	machine := func(name string, cpus chain.CPURequest) chain.Machine {
		return chain.Machine{Name: name, NUMA: []chain.NUMANode{{CPUs: cpus}}}
	}
	c.Hosts = &chain.Hosts{Names: []string{"h1", "h2"}, Underlay: chain.Underlay{MTU: 1600}, Machines: []chain.Machine{
		machine("h1", chain.CPURequest{Set: []int{0, 1}}), machine("h2", chain.CPURequest{Set: []int{2, 3}}),
	}}
	p := mustPlan(t, c, inv)
	if hostsOf(p) != "a=h1 b=h2" || !slices.Equal(p.Functions[1].CPUs, []int{2, 3}) || p.Links[0].Transport != "vxlan" {
		t.Errorf("%s, CPUs %v, %s", hostsOf(p), p.Functions[1].CPUs, p.Links[0].Transport)
	}
	c.Hosts.Machines[0] = machine("h1", chain.CPURequest{Count: 4})
	if p := mustPlan(t, c, inv); hostsOf(p) != "a=h1 b=h1" || p.Links[0].Transport != "veth" {
		t.Errorf("%s over %s", hostsOf(p), p.Links[0].Transport)
	}
	// The underlay's delay counts, and can be relaxed.
	c.Hosts.Machines[0] = machine("h1", chain.CPURequest{Set: []int{0, 1}})
	c.Hosts.Underlay.Delay = 600e3
	inv.Qdiscs = []inventory.Item{{Name: "netem", Status: inventory.OK}}
	c.Links[0].Requires = chain.Requires{Latency: 1e6, Percentile: 99}
	if v := refusal(t, c, inv); !strings.HasPrefix(v.Fix, "a delay of 500us for the underlay, or ") {
		t.Errorf("the fix is %q", v.Fix)
	}
	c.Links[0].Requires.Latency = 500e3
	if v := refusal(t, c, inv); !strings.HasPrefix(v.Fix, "no delay for the underlay, or ") {
		t.Errorf("the fix is %q", v.Fix)
	}
}

// TestNamedCPUsLeadToTheirNode: a function that names CPUs is on a node that has them, and
// two that name the same are on different hosts.
func TestNamedCPUsLeadToTheirNode(t *testing.T) {
	c := pair()
	nodes := []chain.NUMANode{{CPUs: chain.CPURequest{Count: 2}}, {CPUs: chain.CPURequest{Count: 2}}}
	c.Hosts = &chain.Hosts{Names: []string{"h1", "h2"}, Underlay: chain.Underlay{MTU: 1600},
		Machines: []chain.Machine{{Name: "h1", NUMA: nodes}, {Name: "h2", NUMA: nodes}},
		Lines:    []chain.HostLine{{Between: []string{"h1", "h2"}}}}
	c.Functions[0].CPUs.Set, c.Functions[1].CPUs.Set = []int{2, 3}, []int{3}
	if p := mustPlan(t, c, withTunnels(t)); hostsOf(p) != "a=h1 b=h2" || !strings.Contains(p.Functions[0].Reason, "NUMA node 1") {
		t.Errorf("%s, %q", hostsOf(p), p.Functions[0].Reason)
	}
	c.Functions[0].CPUs.Set = []int{1, 2}
	if v := refusal(t, c, withTunnels(t)); v.Constraint != "the CPUs that function a names" {
		t.Errorf("the constraint is %q", v.Constraint)
	}
}

// TestAPlacementKeepsWhatThePlanJudges: on random hosts, a placement without unmet
// requirements is a plan without violations.
func TestAPlacementKeepsWhatThePlanJudges(t *testing.T) {
	inv := withTunnels(t)
	placed, refused := 0, 0
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 1))
		km := func() string { return fmt.Sprintf("length: %dkm", 1+r.IntN(40)) }
		c := exampleWith(t,
			"length: 7km", km(), "length: 80km", km(),
			"rate: 10Gbps", fmt.Sprintf("rate: %dMbps", 300+r.IntN(900)),
			"site, cpus: 2, memory: 4Gi", fmt.Sprintf("site, cpus: %d", 1+r.IntN(24)),
			"core, cpus: 32", fmt.Sprintf("core, cpus: %d", 4+r.IntN(16)),
			"percentile: 50, min_bitrate: 400Mbps", fmt.Sprintf("percentile: 50, min_bitrate: %dMbps", 100+r.IntN(400)))
		p, err := Make(c, inv)
		switch {
		case err == nil:
			placed++
		case p.Placement != nil && p.Placement.Cost.Unmet == 0:
			t.Fatalf("seed %d: placed, but %v", seed, err)
		default:
			refused++
		}
	}
	if placed < 10 || refused < 10 {
		t.Errorf("%d placed, %d refused: one side only", placed, refused)
	}
}

func TestExplainedPlans(t *testing.T) {
	p, err := Explain(exampleWith(t), withTunnels(t), Held{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"ru/edge":    "the chain names the host site",
		"du/site":    "needs 4 CPUs, and 1 of 2 are free there",
		"du/core":    "link fh: latency ≤ 250us at p50, and 635us at p50 is expected of vxlan",
		"cu-up/core": "costs the same; the search came to it later",
		"upf/edge":   "needs 12 CPUs, and 8 of 8 are free there",
	}
	for _, f := range p.Functions {
		if len(f.Alternatives) != 2 {
			t.Errorf("%s has the alternatives %v", f.Name, f.Alternatives)
		}
		for _, a := range f.Alternatives {
			if text := want[f.Name+"/"+a.Host]; !strings.Contains(a.Reason, text) {
				t.Errorf("%s is not on %s because %q, want %q", f.Name, a.Host, a.Reason, text)
			}
		}
	}
	var text bytes.Buffer
	if err := p.Explained(&text, 80, false); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(text.String(), "\n") {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("longer than 80 columns: %q", line)
		}
	}
	for _, want := range []string{"the planner chose the hosts: no placement costs less", "NOT ON", "NOT TAKEN", "planned, and cannot be simulated on it; 2 lines", "Cannot be simulated on this machine"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	var back Plan
	if err := json.Unmarshal(mustJSON(t, p), &back); err != nil || len(back.Functions[1].Alternatives) != 2 {
		t.Errorf("read back: %v, %+v", err, back.Functions)
	}
}
