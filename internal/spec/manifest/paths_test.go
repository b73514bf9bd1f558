// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/manifest"
)

// three is a chain of three functions in a row, with these paths.
func three(paths string) string {
	return head + `functions:
  - {name: a, ports: [{name: p0, face: native}]}
  - {name: b, ports: [{name: p0, face: native}, {name: p1, face: native}]}
  - {name: c, ports: [{name: p0, face: native}]}
links:
  - {name: ab, ends: [a.p0, b.p0]}
  - {name: bc, ends: [b.p1, c.p0]}
` + paths
}

func TestPathsAreExported(t *testing.T) {
	const path = "{name: dl, from: a.p0, through: [b], to: c.p0, requires: {latency: 5ms, percentile: p99.9, packet_loss_ratio: 0.01%}}"
	m, err := manifest.Make("c.yaml", []byte(three("paths: ["+path+"]\n")))
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.NewReplacer("p99.9", "99.9", "0.01%", "0.0001").Replace(path); !strings.Contains(m.YAML, want) {
		t.Errorf("no %s in\n%s", want, m.YAML)
	}
	c, err := manifest.Parse(exported(t, "c.yaml", []byte(three("paths: ["+path+"]\n"))))
	if err != nil {
		t.Fatal(err)
	}
	p := c.Path("dl")
	if p == nil || len(p.Steps) != 2 || p.Steps[0].Out.String() != "a.p0" || p.Steps[1].Link != "bc" || p.Requires.Percentile != 99.9 {
		t.Errorf("the path comes back as %+v", p)
	}
}

func TestPathsHaveLimits(t *testing.T) {
	text := "paths:\n"
	for i := range 33 {
		text += fmt.Sprintf("  - {name: p%d, from: a.p0, through: [b], to: c.p0, requires: {latency: 1ms}}\n", i)
	}
	if _, err := manifest.Make("c.yaml", []byte(three(text))); err == nil || !strings.Contains(err.Error(), "33 paths are more than the limit of 32 in Kubernetes; split the chain") {
		t.Error(err)
	}
}

func TestFaultsOfPathsNameTheirFields(t *testing.T) {
	const spec = `{"functions":[{"name":"a","ports":[{"name":"p0","face":"native"}]},{"name":"b","instances":2,"ports":[{"name":"p0","face":"native"}]}],
	 "links":[{"name":"ab","ends":["a.p0","b.p0"]}],
	 "paths":[{"name":"x","from":"a.p9","to":"b.p0","requires":{"latency":"1ms"}},{"name":"y","from":"a.p0-0","to":"b.p0","requires":{"latency":"1"}}]}`
	_, err := manifest.Parse("c", []byte(spec))
	if err == nil {
		t.Fatal("the object is accepted")
	}
	for _, want := range []string{
		`spec.paths[0].from: there is no port "a.p9"; `,
		`spec.paths[0].to: the function "b" has instances, and a path passes one function after the other`,
		`spec.paths[1].requires.latency: `,
	} {
		if !strings.Contains("\n"+err.Error(), "\n"+want) {
			t.Errorf("no line begins with %s in\n%v", want, err)
		}
	}
}
