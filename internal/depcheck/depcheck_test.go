// SPDX-License-Identifier: Apache-2.0

package depcheck

import (
	"os"
	"path/filepath"
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
}

func TestEachViolationIsCaught(t *testing.T) {
	const in = Module + "/"
	for _, tc := range []struct {
		name string
		pkg  Package
		want string
	}{
		{"chain imports another parser", Package{Path: "internal/chain", Imports: []string{"github.com/spf13/cobra"}}, "which only cmd/... may"},
		{"chain imports plan", Package{Path: "internal/chain", Imports: []string{in + "internal/plan"}}, "may import nothing"},
		{"plan imports host", Package{Path: "internal/plan", Imports: []string{in + "internal/host"}}, "imports internal/host"},
		{"report imports transport", Package{Path: "internal/report", Imports: []string{in + "internal/transport"}}, "imports internal/transport"},
		{"report imports a driver", Package{Path: "internal/report", Imports: []string{in + "internal/transport/veth"}}, "imports internal/transport/veth"},
		{"record imports stats", Package{Path: "internal/record", Imports: []string{in + "internal/stats"}}, "imports internal/stats"},
		{"verdict imports netlink", Package{Path: "internal/verdict", Imports: []string{"github.com/vishvananda/netlink"}}, "which only internal/host/... may"},
		{"below a guarded module", Package{Path: "internal/node", Imports: []string{"github.com/vishvananda/netlink/nl"}}, "which only internal/host/... may"},
		{"stats uses system calls", Package{Path: "internal/stats", Imports: []string{"golang.org/x/sys/unix"}}, "golang.org/x/sys/unix, which only"},
		{"plan uses syscall", Package{Path: "internal/plan", Imports: []string{"syscall"}}, "syscall, which only"},
		{"driver imports driver", Package{Path: "internal/transport/bridge", Imports: []string{in + "internal/transport/veth"}}, "imports internal/transport/veth"},
		{"interface imports driver", Package{Path: "internal/transport", Imports: []string{in + "internal/transport/veth"}}, "imports internal/transport/veth"},
		{"driver mounts", Package{Path: "internal/runtime/runc", Calls: []Call{{"unix.Mount", "runc.go:7"}}}, "runc.go:7: internal/runtime/runc uses unix.Mount"},
		{"unknown module", Package{Path: "internal/host", Imports: []string{"example.org/other"}}, "in no rule"},
		{"unknown package", Package{Path: "internal/elsewhere"}, "has no layer"},
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
		{Path: "internal/chain", Imports: []string{"fmt", "net/netip", "go.yaml.in/yaml/v3"}},
		{Path: "internal/transport/veth", Imports: []string{Module + "/internal/transport", Module + "/internal/host"}},
		{Path: "internal/transport/all", Imports: []string{Module + "/internal/transport/veth"}}, // the exact layer, not the tree's
		{Path: "internal/host", Imports: []string{"syscall", "github.com/vishvananda/netlink/nl"}, Calls: []Call{{"unix.Mount", "x.go:1"}}},
		{Path: "internal/runtime/process", Calls: []Call{{"unix.Kill", "x.go:1"}}},
	}
	if got := Repository.Check(pkgs); len(got) > 0 {
		t.Errorf("refused: %q", got)
	}
}

func TestCallsAreFoundUnderAnyName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.go")
	source := "package x\n\nimport k \"golang.org/x/sys/unix\"\n\nvar unmount = k.Unmount\n"
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	calls, err := systemCalls(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(calls) != 1 || calls[0].Function != "unix.Unmount" || !strings.HasSuffix(calls[0].Position, "x.go:5:15") {
		t.Errorf("got %+v", calls)
	}
}
