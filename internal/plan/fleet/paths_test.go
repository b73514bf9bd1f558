// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/manifest"
)

// onPath is three functions in a row, and a path with that latency at p50 from the first to the last. Links alone
// require nothing.
func onPath(latency, placement string) []byte {
	return []byte(`{` + placement + `"functions":[{"name":"ru","ports":[{"name":"p","face":"native"}]},
		{"name":"du","ports":[{"name":"p","face":"native"},{"name":"q","face":"native"}]},{"name":"cu","ports":[{"name":"p","face":"native"}]}],
		"links":[{"name":"fh","ends":["ru.p","du.p"]},{"name":"f1","ends":["du.q","cu.p"]}],
		"paths":[{"name":"dl","from":"cu.p","through":["du"],"to":"ru.p","requires":{"latency":"` + latency + `","percentile":50}}]}`)
}

// A path is part of the plan of a node.
func TestAPathCanBeInfeasible(t *testing.T) {
	for latency, want := range map[string]string{"1s": "on n1", "100ns": "n1: path dl: latency ≤ 100ns at p50: its links are expected to give "} {
		c, err := manifest.Parse("c", onPath(latency, ""))
		if err != nil {
			t.Fatal(err)
		}
		choice := fleet.Choose(fleet.Plan(c, []fleet.Node{joined(t, "n1")}))
		if got := choice.String(); !strings.HasPrefix(got, want) || (choice.Plan != nil) != (latency == "1s") || latency != "1s" && !strings.Contains(got, "allow ") {
			t.Errorf("%s: %s", latency, got)
		}
	}
}

// Each link may cross nodes, but a path over several links then takes longer.
func TestPathsThatShouldNotCross(t *testing.T) {
	for latency, want := range map[string]int{"1s": 0, "900us": 1} {
		c, err := manifest.Parse("c", onPath(latency, ""))
		if err != nil {
			t.Fatal(err)
		}
		across := fleet.Plan(c, []fleet.Node{joined(t, "n1")})[0].Across
		if across.Link("fh") == nil || len(across.Paths) != want {
			t.Fatalf("%s: %+v", latency, across)
		}
		if want > 0 && (!strings.HasPrefix(across.Paths[0], "path dl: latency ≤ 900us at p50 is not expected if its links cross nodes, as ") || !strings.HasSuffix(across.Paths[0], "or ask for a placement")) {
			t.Error(across.Paths[0])
		}
	}
}

// A placement is one in which the path's budget holds: lines and links share it.
func TestPathsArePlaced(t *testing.T) {
	for latency, want := range map[string]string{"20ms": "", "5ms": "placement: latency ≤ 5ms at p50 of path dl: "} {
		spec := onPath(latency, `"placement":{"lines":[{"between":["n1","n2"],"length":"900km"},{"between":["n2","n3"],"length":"900km"}]},`)
		spec = []byte(strings.NewReplacer(`"name":"ru"`, `"name":"ru","host":"n1"`, `"name":"cu"`, `"name":"cu","host":"n3"`).Replace(string(spec)))
		p := siteOf(t, spec, machine("n1", 2, ""), machine("n2", 2, ""), machine("n3", 2, "")).Place(nil)
		switch {
		case want == "" && (p.Refusal != "" || !strings.HasPrefix(spots(p), "ru=n1 du=") || !strings.HasSuffix(spots(p), " cu=n3")):
			t.Errorf("%s: %s, %s", latency, spots(p), p.Refusal)
		case want != "" && (p.Spots != nil || !strings.HasPrefix(p.Refusal, want) || !strings.Contains(p.Refusal, "a latency of 9.6ms for path dl")):
			t.Errorf("%s: %s, %s", latency, spots(p), p.Refusal)
		}
	}
}

// A user's packet must fit into the tunnels between nodes, too. The link that it does not fit into is named.
func TestTheNetworkBetweenNodesIsTooNarrowForAPath(t *testing.T) {
	for network, want := range map[int]string{
		1550: "",
		1549: "path dl: mtu ≥ 1500 B is not expected if its links cross nodes, as a user's packet of at most 1499 B fits into link f1, " +
			"of which VXLAN takes 50 B of the underlay's 1549: keep its pods on one node, or ask for a placement",
	} {
		spec := strings.Replace(string(onPath("1s", "")), `"percentile":50`, `"percentile":50,"mtu":1500`, 1)
		c, err := manifest.Parse("c", []byte(spec))
		if err != nil {
			t.Fatal(err)
		}
		n := joined(t, "n1")
		n.Network.MTU = network
		p := fleet.Plan(c, []fleet.Node{n})[0]
		if got := strings.Join(p.Across.Paths, "; "); got != want || p.Refusal != "" {
			t.Errorf("network of %d: %q, %s\nwhy: %v", network, got, p.Refusal, p.Across.Why)
		}
	}
}

// A placement in which a link would cross a network that is too narrow for it is none.
func TestAPathIsPlacedWhereItsPacketsFit(t *testing.T) {
	spec := strings.Replace(string(onPath("1s", `"placement":{},`)), `"percentile":50`, `"percentile":50,"mtu":1500`, 1)
	apart := strings.NewReplacer(`"name":"ru"`, `"name":"ru","host":"n1"`, `"name":"cu"`, `"name":"cu","host":"n2"`).Replace(spec)
	for _, c := range []struct{ spec, spots, note string }{
		{spec, "ru=n1 du=n1 cu=n1", ""},
		{apart, "", "; link f1 cannot cross nodes: mtu 1500: no transport can do this; the nearest is vxlan, which carries packets of at most 1450 bytes over an underlay with mtu 1500"},
	} {
		site := siteOf(t, []byte(c.spec), machine("n1", 4, ""), machine("n2", 4, ""))
		for i := range site.Nodes {
			site.Nodes[i].Network.MTU = 1500
		}
		site.Choice = fleet.Choose(fleet.Plan(site.Chain, site.Nodes))
		if p := site.Place(nil); spots(p) != c.spots || (p.Refusal == "") != (c.spots != "") || !strings.Contains(p.Note, c.note) {
			t.Errorf("%s: %s, %s; %s", c.spec, spots(p), p.Refusal, p.Note)
		}
	}
}
