// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/manifest"
)

const placedSpec = `{"placement":{"nodeSelector":{"pool":"ran","x/y":"1"},"topologyKey":"topology.kubernetes.io/zone","lines":[{"between":["site-1.example","edge"],"rate":"10Gbps","delay":"20us","length":"7km"}]},
 "functions":[{"name":"a","host":"site-1.example","cpus":4,"memory":"8Gi","split":"7b","ports":[{"name":"p","face":"native"}]},{"name":"b","ports":[{"name":"p","face":"native"}]}],
 "links":[{"name":"ab","ends":["a.p","b.p"]}]}`

func TestPlacementIsRead(t *testing.T) {
	p, err := manifest.ParsePlacement([]byte(placedSpec))
	if err != nil {
		t.Fatal(err)
	}
	want := &manifest.Placement{
		NodeSelector: map[string]string{"pool": "ran", "x/y": "1"}, TopologyKey: "topology.kubernetes.io/zone",
		Lines:     []chain.HostLine{{Between: []string{"site-1.example", "edge"}, Rate: 10e9, Delay: 20e3, Length: 7000}},
		Functions: map[string]manifest.FunctionNeeds{"a": {Host: "site-1.example", CPUs: 4, Memory: 8 << 30}},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("%+v, want %+v", p, want)
	}
	c, err := manifest.Parse("c", []byte(placedSpec))
	if err != nil {
		t.Fatal(err)
	}
	if r := c.Links[0].Requires; r.Latency != 250e3 || r.MinBitrate != 86e9 {
		t.Errorf("the split asks for %+v", r)
	}
	if f := c.Functions[0]; f.Host != "" || f.CPUs.Number() != 0 || f.Memory != 0 || c.Hosts != nil {
		t.Errorf("a pod states its own, but the function has %+v", f)
	}
}

func TestPlacementIsOptional(t *testing.T) {
	for spec, asked := range map[string]bool{`{"functions":[]}`: false, `{"placement":{},"functions":[]}`: true} {
		if p, err := manifest.ParsePlacement([]byte(spec)); err != nil || (p != nil) != asked {
			t.Errorf("%s: %+v, %v", spec, p, err)
		}
	}
}

func TestWrongPlacementsAreRefused(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"7km"`, `"7 km"`, "spec.placement.lines[0].length: "},
		{`"edge"]`, `"site-1.example"]`, "spec.placement.lines[0].between: a line joins two different places; name two places"},
		{`"edge"]`, `"edge","x"]`, "spec.placement.lines[0].between: a line joins two"},
		{`"length":"7km"}`, `"length":"7km"},{"between":["edge","site-1.example"]}`, `spec.placement.lines[1]: two lines join "edge" and "site-1.example"; describe the faster one`},
		{`"20us"`, `"20ns"`, "spec.placement.lines[0].delay: delay cannot be 20ns; write whole microseconds"},
		{`"topologyKey":"topology.kubernetes.io/zone"`, `"topologyKey":"a b"`, `spec.placement.topologyKey: a label cannot be "a b"`},
		{`"lines":[`, `"line":[`, `unknown field "line" in placement; did you mean "lines"?`},
		{`"pool":"ran"`, `"-pool":"ran"`, `a label cannot be "-pool"`},
		{`"cpus":4`, `"cpus":"4-7"`, `spec.functions[0].cpus: cpus must be a whole number, not "4-7"`},
		{`"cpus":4`, `"cpus":4,"instances":2`, "spec.functions[0].instances: functions with instances cannot be placed yet: their pods share one template; remove instances or placement"},
		{`"8Gi"`, `"8"`, "spec.functions[0].memory: memory cannot be 8: no process fits"},
		{`"host":"site-1.example"`, `"host":"a/b"`, `spec.functions[0].host: a place cannot be "a/b"`},
		{`"placement":`, `"policy":{},"x":`, `unknown field "x"`},
	} {
		text := strings.Replace(placedSpec, c.old, c.new, 1)
		if text == placedSpec {
			t.Fatalf("no %s", c.old)
		}
		if _, err := manifest.Parse("c", []byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.new, err, c.want)
		}
	}
}

// What only a placement reads is refused without one.
func TestNeedsWantAPlacement(t *testing.T) {
	start, end := strings.Index(placedSpec, `"functions"`), len(placedSpec)
	_, err := manifest.Parse("c", []byte("{"+placedSpec[start:end]))
	for _, name := range []string{"cpus", "memory", "host"} {
		want := "spec.functions[0]." + name + ": " + name + " counts only if the chain asks for placement; add placement: {} to the spec, or remove it"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// An export keeps the split, since its links require something by it, and leaves out the rest.
func TestExportsKeepSplits(t *testing.T) {
	m, err := manifest.Make("c.yaml", []byte(two("\n    cpus: 2\n    split: 2", "", "")))
	if err != nil || !strings.Contains(m.YAML, "split: 2") || strings.Contains(m.YAML, "cpus: 2") || strings.Join(m.LeftOut, "") != "a: cpus" {
		t.Errorf("%v: %+v", err, m)
	}
}
