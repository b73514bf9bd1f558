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
