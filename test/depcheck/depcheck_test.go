// SPDX-License-Identifier: Apache-2.0

package depcheck

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRepositoryKeepsTheDirection(t *testing.T) {
	pkgs, err := Load("../..", Module)
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < 10 {
		t.Fatalf("only %d packages were found", len(pkgs))
	}
	for _, sentence := range Repository.Check(pkgs) {
		t.Error(sentence)
	}
	for _, a := range Repository.Draw(pkgs).Upwards() {
		t.Errorf("make rooms draws an arrow upwards: %s imports %s", a.From, a.To)
	}
}

func TestEachViolationIsCaught(t *testing.T) {
	const in = Module + "/"
	for _, tc := range []struct {
		name string
		pkg  Package
		want string
	}{
		{"chain imports another parser", Package{Path: "internal/spec/chain", Imports: []string{"github.com/spf13/cobra"}}, "which only cmd/... may"},
		{"spec imports plan", Package{Path: "internal/spec/chain", Imports: []string{in + "internal/plan"}}, "may import nothing"},
		{"plan imports host", Package{Path: "internal/plan", Imports: []string{in + "internal/host"}}, "imports internal/host; room internal/plan may import only internal/spec"},
		{"placement imports the planner", Package{Path: "internal/plan/place", Imports: []string{in + "internal/plan"}}, "not on a floor below"},
		{"result imports link", Package{Path: "internal/result/report", Imports: []string{in + "internal/link/transport"}}, "imports internal/link/transport"},
		{"result imports a runtime", Package{Path: "internal/result/verdict", Imports: []string{in + "internal/function/runc"}}, "imports internal/function/runc"},
		{"node imports result", Package{Path: "internal/node/doctor", Imports: []string{in + "internal/result/record"}}, "imports internal/result/record"},
		{"record imports stats", Package{Path: "internal/result/record", Imports: []string{in + "internal/result/stats"}}, "not on a floor below"},
		{"report imports compare", Package{Path: "internal/result/report", Imports: []string{in + "internal/result/compare"}}, "not on a floor below"},
		{"verdict imports netlink", Package{Path: "internal/result/verdict", Imports: []string{"github.com/vishvananda/netlink"}}, "which only internal/host/... may"},
		{"below a guarded module", Package{Path: "internal/node", Imports: []string{"github.com/vishvananda/netlink/nl"}}, "which only internal/host/... may"},
		{"stats uses system calls", Package{Path: "internal/result/stats", Imports: []string{"golang.org/x/sys/unix"}}, "golang.org/x/sys/unix, which only"},
		{"plan uses syscall", Package{Path: "internal/plan", Imports: []string{"syscall"}}, "syscall, which only"},
		{"driver imports driver", Package{Path: "internal/link/bridge", Imports: []string{in + "internal/link/veth"}}, "not on a floor below"},
		{"interface imports driver", Package{Path: "internal/link/transport", Imports: []string{in + "internal/link/veth"}}, "not on a floor below"},
		{"driver mounts", Package{Path: "internal/function/runc", Calls: []Call{{"unix.Mount", "runc.go:7"}}}, "runc.go:7: internal/function/runc uses unix.Mount"},
		{"program written out", Package{Path: "internal/plan", Calls: []Call{{"exec.Cmd{}", "x.go:3"}}}, "x.go:3: internal/plan uses exec.Cmd{}"},
		{"program by hand", Package{Path: "internal/node", Calls: []Call{{"os.StartProcess", "x.go:4"}}}, "x.go:4: internal/node uses os.StartProcess"},
		{"product imports what tests need", Package{Path: "internal/node", Imports: []string{in + "test/testenv"}}, "imports test/testenv"},
		{"unknown module", Package{Path: "internal/host", Imports: []string{"example.org/other"}}, "in no rule"},
		{"unknown package", Package{Path: "internal/elsewhere"}, "is in no room"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Repository.Check([]Package{tc.pkg})
			if len(got) != 1 || !strings.Contains(got[0], tc.want) {
				t.Errorf("got %q, want one sentence with %q", got, tc.want)
			}
		})
	}
}

func TestWhatIsPermittedPasses(t *testing.T) {
	pkgs := []Package{
		{Path: "internal/spec/chain", Imports: []string{"fmt", "net/netip", "go.yaml.in/yaml/v3"}},
		{Path: "internal/link/veth", Imports: []string{Module + "/internal/link/transport", Module + "/internal/host"}},
		{Path: "internal/link/all", Imports: []string{Module + "/internal/link/veth"}},
		{Path: "internal/link/transporttest", Imports: []string{Module + "/test/testenv"}},
		{Path: "internal/host", Imports: []string{"syscall", "github.com/vishvananda/netlink/nl"}, Calls: []Call{{"unix.Mount", "x.go:1"}}},
		{Path: "internal/function/process", Calls: []Call{{"unix.Kill", "x.go:1"}}},
		{Path: "internal/measure/verify", Imports: []string{Module + "/internal/spec/chain"}}, // through result
	}
	if got := Repository.Check(pkgs); len(got) > 0 {
		t.Errorf("refused: %q", got)
	}
}

func TestCallsAreFoundUnderAnyName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.go")
	source := "package x\n\nimport k \"golang.org/x/sys/unix\"\nimport \"os/exec\"\n\nvar unmount = k.Unmount\n\nvar cmd = &exec.Cmd{}\n"
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	calls, err := systemCalls(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(calls) != 3 || calls[1].Function != "exec.Cmd{}" || calls[2].Function != "exec.Cmd" || calls[0].Function != "unix.Unmount" || !strings.HasSuffix(calls[0].Position, "x.go:6:15") {
		t.Errorf("got %+v", calls)
	}
}

func TestRoomsThatStandOnEachOtherAreCaught(t *testing.T) {
	rules := Rules{Rooms: []Room{{Path: "a", On: []string{"b"}}, {Path: "b", On: []string{"a"}}}}
	got := rules.cycles()
	if len(got) != 1 || !strings.Contains(got[0], "room a stands on b") {
		t.Errorf("got %q", got)
	}
}

func TestPicturePutsRoomsAboveWhatTheyImport(t *testing.T) {
	rules := Rules{Module: "m", Rooms: []Room{{Path: "low"}, {Path: "middle", On: []string{"low"}}, {Path: "high", On: []string{"middle"}}}}
	p := rules.Draw([]Package{
		{Path: "low/a", Lines: 5}, {Path: "low/b", Lines: 7},
		{Path: "middle", Imports: []string{"m/low/a", "fmt"}},
		{Path: "high/x", Imports: []string{"m/low/a", "m/low/b", "m/middle"}},
	})
	want := []Drawn{{"high", 3, 1, 0}, {"middle", 2, 1, 0}, {"low", 1, 2, 12}}
	if !slices.Equal(p.Rooms, want) || len(p.Arrows) != 3 || len(p.Upwards()) != 0 {
		t.Errorf("%+v", p)
	}
	var text, svg strings.Builder
	if err := errors.Join(p.Text(&text), p.SVG(&svg)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "3 rooms, 3 arrows, 0 upwards") || strings.Count(svg.String(), "<line") != 3 {
		t.Errorf("%s\n%s", text.String(), svg.String())
	}
	// Two rooms that import each other cannot both stand above the other.
	cyclic := rules.Draw([]Package{{Path: "low", Imports: []string{"m/middle"}}, {Path: "middle", Imports: []string{"m/low"}}})
	if len(cyclic.Upwards()) == 0 {
		t.Errorf("a cycle was drawn without an upward arrow: %+v", cyclic)
	}
}
