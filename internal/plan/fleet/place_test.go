// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/link/vxlan"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/manifest"
)

// zone is the node label that names the place of a node.
const zone = "topology.kubernetes.io/zone"

// joined is a node with shared memory and tunnels.
func joined(t *testing.T, name string) fleet.Node {
	n := node(t, name, "shm")
	n.Network = &fleet.Network{MTU: 9000}
	tunnel := inventory.Transport{Item: inventory.Item{Name: "vxlan", Status: inventory.OK}, Caps: vxlan.New().Caps()}
	tunnel.Caps.Faces = append([]string{"native"}, tunnel.Caps.Faces...)
	n.Inventory.Transports = append(n.Inventory.Transports, tunnel)
	return n
}

// machine is a node with that many CPUs in a zone.
func machine(name string, cpus int, at string) fleet.Machine {
	return fleet.Machine{Name: name, CPUs: cpus, Memory: 8 << 30, Labels: map[string]string{zone: at, "pool": "ran"}}
}

// labelled is a node with 8 CPUs in a pool.
func labelled(name, pool string) fleet.Machine {
	m := machine(name, 8, "")
	m.Labels["pool"] = pool
	return m
}

// placed places two functions that need 1 and 3 CPUs on machines.
func placed(t *testing.T, requires, placement string, fixed map[string]string, machines ...fleet.Machine) fleet.Placed {
	t.Helper()
	return placedAt(t, "", "", requires, placement, fixed, machines...)
}

// placedAt does the same with hosts for the functions.
func placedAt(t *testing.T, cu, du, requires, placement string, fixed map[string]string, machines ...fleet.Machine) fleet.Placed {
	t.Helper()
	host := func(name string) string {
		if name == "" {
			return ""
		}
		return `"host":"` + name + `",`
	}
	spec := []byte(fmt.Sprintf(`{"placement":{%s},"functions":[{%s"name":"cu","cpus":1,"ports":[{"name":"f1u","face":"native"}]},
		{%s"name":"du","cpus":3,"memory":"4Gi","ports":[{"name":"f1u","face":"native"}]}],
		"links":[{"name":"f1u","ends":["cu.f1u","du.f1u"],"requires":{%s}}]}`, placement, host(cu), host(du), requires))
	return siteOf(t, spec, machines...).Place(fixed)
}

// siteOf is a chain f1 by its spec, and machines that have links to each other.
func siteOf(t *testing.T, spec []byte, machines ...fleet.Machine) *fleet.Site {
	t.Helper()
	c, err := manifest.Parse("f1", spec)
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := manifest.ParsePlacement(spec)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []fleet.Node
	for _, m := range machines {
		nodes = append(nodes, joined(t, m.Name))
	}
	return &fleet.Site{Chain: c, Wanted: wanted, Choice: fleet.Choose(fleet.Plan(c, nodes)), Nodes: nodes, Machines: machines}
}

// spots is "function=node" of every function.
func spots(p fleet.Placed) string {
	var all []string
	for _, s := range p.Spots {
		all = append(all, s.Function+"="+s.Node)
	}
	return strings.Join(all, " ")
}

const (
	// short needs a longer fibre to be cut.
	short = `"latency":"900us","percentile":50`
	far   = `"lines":[{"between":["n1","n2"],"rate":"10Gbps","length":"200km"}]`
)

func TestFunctionsArePlacedTogether(t *testing.T) {
	p := placed(t, short, far, nil, machine("n1", 3, ""), machine("n2", 4, ""))
	if got := spots(p); got != "cu=n2 du=n2" || p.Refusal != "" {
		t.Fatalf("%s: %+v", got, p)
	}
	for f, want := range map[int]string{0: "not on n1: link f1u: latency ≤ 900us at p50", 1: "no other host costs less"} {
		if got := p.Spots[f].Reason; !strings.Contains(got, want) {
			t.Errorf("the reason is %q, want %q", got, want)
		}
	}
}

// What the requirement leaves of a line decides whether functions may be apart.
func TestFunctionsArePlacedApart(t *testing.T) {
	p := placed(t, short, strings.Replace(far, "200km", "1km", 1), nil, machine("n1", 3, ""), machine("n2", 3, ""))
	if got := spots(p); got != "cu=n1 du=n2" && got != "cu=n2 du=n1" {
		t.Fatalf("%s: %+v", got, p)
	}
}

func TestNoPlacementNamesTheSmallestChange(t *testing.T) {
	p := placed(t, short, far, nil, machine("n1", 3, ""), machine("n2", 3, ""))
	for _, want := range []string{"placement: latency ≤ 900us at p50 of link f1u: it cannot hold together with ", "less fibre between n1 and n2", "1 more CPU on n1"} {
		if !strings.Contains(p.Refusal, want) {
			t.Errorf("no %q in %q", want, p.Refusal)
		}
	}
	if p.Spots != nil {
		t.Errorf("functions are placed: %+v", p)
	}
}

// A function that runs stays, and the others come to it.
func TestFixedFunctionsStay(t *testing.T) {
	machines := []fleet.Machine{machine("n1", 8, ""), machine("n2", 8, "")}
	for _, node := range []string{"n1", "n2"} {
		p := placed(t, short, far, map[string]string{"cu": node}, machines...)
		if got := spots(p); got != fmt.Sprintf("cu=%s du=%[1]s", node) {
			t.Errorf("with cu on %s: %s: %+v", node, got, p)
		}
	}
	p := placed(t, short, far, map[string]string{"cu": "n1"}, machine("n1", 3, ""), machine("n2", 8, ""))
	if !strings.Contains(p.Refusal, "function cu on host n1") {
		t.Errorf("%+v", p)
	}
}

// Lines join places; nodes at one place have no delay between them.
func TestLinesJoinZones(t *testing.T) {
	lines := `"topologyKey":"` + zone + `","lines":[{"between":["site","edge"],"length":"200km"},{"between":["edge","moon"],"length":"1km"}]`
	p := placed(t, short, lines, nil, machine("a", 1, "site"), machine("b", 3, "edge"), machine("edge", 1, "edge"), machine("d", 9, ""))
	if got := spots(p); got != "cu=edge du=b" || !strings.Contains(p.Note, "the line from edge to moon is left out") {
		t.Errorf("%s: %+v", got, p)
	}
	p = placed(t, short, lines, nil, machine("a", 1, "site"), machine("b", 3, "edge"))
	if !strings.Contains(p.Refusal, "less fibre between site and edge") {
		t.Errorf("%+v", p)
	}
	// A node that has the name of a place need not be there.
	p = placed(t, short, lines, nil, machine("b", 3, "edge"), machine("edge", 1, "site"))
	if !strings.Contains(p.Refusal, "less fibre between site and "+zone+"=edge") {
		t.Errorf("%+v", p)
	}
}

// Without lines the network has no delay: only the nodes' resources keep functions apart.
func TestWithoutLinesAllNodesAreJoined(t *testing.T) {
	if p := placed(t, short, "", nil, machine("n1", 3, ""), machine("n2", 1, "")); spots(p) != "cu=n2 du=n1" {
		t.Errorf("%+v", p)
	}
}

func TestNodesThatTakeNoFunctions(t *testing.T) {
	closed := machine("n1", 8, "")
	closed.Closed = "it is cordoned"
	other := labelled("n2", "web")
	alone := machine("n3", 8, "")
	if p := placed(t, short, `"nodeSelector":{"pool":"ran"}`, nil, closed, other, alone); spots(p) != "cu=n3 du=n3" {
		t.Errorf("%+v", p)
	}
	p := placed(t, short, `"nodeSelector":{"pool":"ran"}`, nil, closed, other)
	if p.Refusal != "placement: no node can take the chain's functions: n1: it is cordoned; n2: it is not labelled pool=ran" {
		t.Errorf("%+v", p)
	}
	var many []fleet.Machine
	for i := range chain.MaxMachines + 1 {
		many = append(many, machine(fmt.Sprintf("n%02d", i), 8, ""))
	}
	if p := placed(t, short, "", nil, many...); !strings.Contains(p.Refusal, "give placement a nodeSelector") {
		t.Errorf("%+v", p)
	}
}

// A chain that is to be measured in any case is placed as well as that goes.
func TestWarnPlacesWhatHasNoEvidence(t *testing.T) {
	p := placed(t, short+`}}],"policy":{"on_infeasible":"warn"},"links":[{"name":"f1u","ends":["cu.f1u","du.f1u"],"requires":{`+short, far, nil, machine("n1", 3, ""), machine("n2", 3, ""))
	if p.Refusal != "" || len(p.Spots) != 2 || !strings.Contains(p.Note, "links with an unmet requirement: 1") {
		t.Errorf("%+v", p)
	}
}

// Applications with devices of their own keep them on one node only.
func TestOwnDevicesArePlacedTogether(t *testing.T) {
	spec := []byte(`{"placement":{},"functions":[{"name":"a","cpus":2,"ports":[{"name":"p","face":"dpdk"}]},{"name":"b","cpus":2,"ports":[{"name":"p","face":"dpdk"}]}],
		"links":[{"name":"l","ends":["a.p","b.p"]}]}`)
	c, err := manifest.Parse("c", spec)
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := manifest.ParsePlacement(spec)
	if err != nil {
		t.Fatal(err)
	}
	n := joined(t, "n1")
	n.Inventory.DPDK = []inventory.Item{{Name: "net_dray", Status: inventory.OK}}
	for i := range n.Inventory.Transports {
		n.Inventory.Transports[i].Caps.Faces = []string{"native", "dpdk"}
	}
	n.Inventory.Transports[0].Name = "memif"
	choice := fleet.Choose(fleet.Plan(c, []fleet.Node{n}))
	if choice.Plan == nil || choice.Plan.Links[0].Transport != "memif" {
		t.Fatalf("%+v", choice)
	}
	choice.Nodes = append(choice.Nodes, "n2")
	s := fleet.Site{Chain: c, Wanted: wanted, Choice: choice, Nodes: []fleet.Node{n}, Machines: []fleet.Machine{machine("n1", 2, ""), machine("n2", 2, "")}}
	p := s.Place(nil)
	if p.Spots != nil || !strings.Contains(p.Refusal, "2 more CPUs on n1") {
		t.Errorf("%+v", p)
	}
}

// A function may name a node or a place as its host.
func TestFunctionsNameTheirPlace(t *testing.T) {
	machines := []fleet.Machine{machine("a", 4, "site"), machine("b", 4, "edge"), machine("c", 1, "edge")}
	lines := `"topologyKey":"` + zone + `","lines":[{"between":["site","edge"],"length":"200km"}]`
	for _, c := range []struct{ cu, du, want string }{
		{"edge", "", "cu=b du=b"},
		{"a", "", "cu=a du=a"},
		{"edge", "c", "function du on host c"},
		{"site", "edge", "less fibre between site and edge"},
		{"moon", "edge", "placement: function cu: no node that can take functions is moon, or is there"},
	} {
		p := placedAt(t, c.cu, c.du, short, lines, nil, machines...)
		if got := spots(p) + p.Refusal; !strings.Contains(got, c.want) {
			t.Errorf("cu on %q, du on %q: %s, want %s", c.cu, c.du, got, c.want)
		}
	}
	p := placed(t, short, `"nodeSelector":{"pool":"web"}`, map[string]string{"cu": "a"}, machine("a", 4, ""), labelled("b", "web"))
	if !strings.Contains(p.Refusal, "placement: function cu: no node that can take functions is a") {
		t.Errorf("a pod on a node that the placement leaves out: %+v", p)
	}
}
