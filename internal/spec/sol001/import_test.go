// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected files in testdata")

// TestImport compares chains and notes with those in testdata. The descriptors of the
// folder tacker are published ones, see its SOURCES.
func TestImport(t *testing.T) {
	for name, c := range map[string]struct{ file, flavour string }{
		"nsd":                {"testdata/nsd.yaml", ""},
		"containers":         {"testdata/containers.yaml", ""},
		"practical-scalable": {"testdata/tacker/practical", "scalable"},
		"practical-ha":       {"testdata/tacker/practical", "ha"},
		"sample1":            {"testdata/tacker/sample1/ut_sample1_df_simple.yaml", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := mustImport(t, c.file, c.flavour)
			var notes strings.Builder
			for _, n := range got.LeftOut {
				notes.WriteString(n.String() + "\n")
			}
			golden(t, "testdata/"+name+".chain.yaml", got.YAML)
			golden(t, "testdata/"+name+".notes.txt", notes.String())
		})
	}
}

func mustImport(t *testing.T, file, flavour string) *Imported {
	t.Helper()
	src, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	got, err := Import(src, flavour)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-) and the result (+) differ; -update rewrites it:\n%s", filepath.Base(file), diff)
	}
}

// TestNamesAreUnique: parts whose names differ only in what a chain's name cannot have.
func TestNamesAreUnique(t *testing.T) {
	got := imported(t, small("")+`
    A: {type: tosca.nodes.nfv.Vdu.Compute}
    a-2: {type: tosca.nodes.nfv.Vdu.Compute}
    "Ä": {type: tosca.nodes.nfv.Vdu.Compute}
    a_X: {type: tosca.nodes.nfv.VduCp, requirements: [virtual_binding: a, virtual_link: x]}
    a_x: {type: tosca.nodes.nfv.VduCp, requirements: [virtual_binding: a, virtual_link: X]}
    a_all: {type: tosca.nodes.nfv.VduCp, requirements: [virtual_binding: a]}
    A_a_very_long_name_of_a_port: {type: tosca.nodes.nfv.VduCp, requirements: [virtual_binding: A, virtual_link: x]}
    A_a_very_long_name_of_another: {type: tosca.nodes.nfv.VduCp, requirements: [virtual_binding: A, virtual_link: X]}
    x: {type: tosca.nodes.nfv.VnfVirtualLink}
    X: {type: tosca.nodes.nfv.VnfVirtualLink}
`)
	var all []string
	c := parsed(t, got.YAML)
	for _, f := range c.Functions {
		all = append(all, f.Name)
		for _, p := range f.Ports {
			all = append(all, f.Name+"."+p.Name)
		}
	}
	for _, l := range c.Links {
		all = append(all, l.Name)
	}
	want := "a a.x a.x-2 a.all-2 a-2 a-2.a-very-long-nam a-2.a-very-long-n-2 a-2-2 vdu x x-2"
	if got := strings.Join(all, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestALevelDecides: the default instantiation level counts more than the initial delta.
func TestALevelDecides(t *testing.T) {
	policies := []string{
		"    - i: {type: tosca.policies.nfv.VduInitialDelta, targets: [a], properties: {initial_delta: {number_of_instances: 5}}}\n",
		"    - l: {type: tosca.policies.nfv.InstantiationLevels, properties: {levels: {one: {}, two: {}}, default_level: two}}\n",
		"    - v: {type: tosca.policies.nfv.VduInstantiationLevels, targets: [a], properties: {levels: {one: {number_of_instances: 2}, two: {number_of_instances: 3}}}}\n",
	}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0}} {
		text, want := small("")+"  policies:\n", 3
		for _, i := range order {
			text += policies[i]
		}
		if len(order) == 1 {
			want = 5
		}
		if got := len(parsed(t, imported(t, text).YAML).Functions); got != want {
			t.Errorf("order %v: %d instances, want %d", order, got, want)
		}
	}
}
