// SPDX-License-Identifier: Apache-2.0

// Package direction checks that the packages of this module depend on each
// other as the table of kube/README.md says.
package direction

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/test/depcheck"
)

const module = "github.com/drayage/dray/kube"

var quoted = regexp.MustCompile("`([^`]+)`")

// names are the words of a cell that are set as code.
func names(cell string) []string {
	var all []string
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

// rooms reads the table: a folder in each row, and in the last column the
// folders that it builds on. A short name means the folder that has it in its path.
func rooms(readme string) []depcheck.Room {
	var all []depcheck.Room
	for _, row := range strings.Split(readme, "\n") {
		cells := strings.Split(row, "|")
		if len(cells) != 5 {
			continue
		}
		var on []string
		for _, r := range all {
			named := func(short string) bool { return slices.Contains(strings.Split(r.Path, "/"), short) }
			if strings.Contains(cells[3], "all of these") || slices.ContainsFunc(names(cells[3]), named) {
				on = append(on, r.Path)
			}
		}
		for _, folder := range names(cells[1]) {
			all = append(all, depcheck.Room{Path: folder, On: on})
		}
	}
	return all
}

// inside leaves out imports of other modules, of which the table says nothing.
func inside(all []depcheck.Package) []depcheck.Package {
	for i := range all {
		all[i].Imports = slices.DeleteFunc(all[i].Imports, func(path string) bool { return !strings.HasPrefix(path, module+"/") })
	}
	return all
}

// starters may start programs that live on.
var starters = []string{
	"internal/switchd", // the daemons of Open vSwitch
	"internal/eal",     // the DPDK application itself
	"test/...",
}

func rules(t *testing.T) depcheck.Rules {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return depcheck.Rules{Module: module, Rooms: rooms(string(readme)), Calls: slices.Concat(depcheck.Commands(starters...), depcheck.Dumps)}
}

func TestPackagesDependAsTheTableSays(t *testing.T) {
	all, err := depcheck.Load("../..", module)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 8 {
		t.Fatalf("only %d packages were found", len(all))
	}
	for _, sentence := range rules(t).Check(inside(all)) {
		t.Errorf("%s (the table of kube/README.md is the rule)", sentence)
	}
}

func TestEachViolationIsCaught(t *testing.T) {
	const in = module + "/"
	r := rules(t)
	for name, tc := range map[string]struct {
		pkg  depcheck.Package
		want string
	}{
		"the node imports the operator": {depcheck.Package{Path: "internal/nodeagent", Imports: []string{in + "internal/operator"}}, "imports internal/operator"},
		"the operator imports the node": {depcheck.Package{Path: "internal/operator", Imports: []string{in + "internal/nodeagent"}}, "imports internal/nodeagent"},
		"the API imports a daemon":      {depcheck.Package{Path: "api/v1alpha1", Imports: []string{in + "internal/nodeagent"}}, "may import nothing"},
		"the operator starts programs":  {depcheck.Package{Path: "internal/operator", Calls: []depcheck.Call{{Function: "exec.Command", Position: "x.go:1"}}}, "x.go:1: internal/operator uses exec.Command"},
		"a package without a row":       {depcheck.Package{Path: "internal/elsewhere"}, "is in no room"},
	} {
		t.Run(name, func(t *testing.T) {
			got := r.Check([]depcheck.Package{tc.pkg})
			if len(got) != 1 || !strings.Contains(got[0], tc.want) {
				t.Errorf("got %q, want one sentence with %q", got, tc.want)
			}
		})
	}
	if got := r.Check([]depcheck.Package{{Path: "cmd/dray-node", Imports: []string{in + "internal/nodeagent", in + "api/v1alpha1"}}}); len(got) > 0 {
		t.Errorf("refused: %q", got)
	}
}
