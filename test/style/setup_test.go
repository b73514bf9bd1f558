// SPDX-License-Identifier: Apache-2.0

package style

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestSetupInstallsWhatTestsAskFor keeps scripts/setup.sh complete: what it omits
// would otherwise be missing only on a fresh machine.
func TestSetupInstallsWhatTestsAskFor(t *testing.T) {
	installed := neededPrograms(t)
	if !installed["runc"] || !installed["chromium"] {
		t.Fatalf("the table of scripts/setup.sh was not understood: %v", installed)
	}
	for _, name := range trackedFiles(t) {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue
		}
		for program, position := range programsAskedFor(t, name, content) {
			if !installed[program] {
				t.Errorf("%s asks for %s, which scripts/setup.sh does not install", position, program)
			}
		}
	}
}

func TestProgramsAskedFor(t *testing.T) {
	source := "package x\n\nfunc f() {\n\ttestenv.Program(t, \"runc\", \"tc\")\n\ttestenv.Root(t)\n}\n"
	got := programsAskedFor(t, "x_test.go", []byte(source))
	if len(got) != 2 || got["runc"] != "x_test.go:4:21" || got["tc"] == "" {
		t.Errorf("got %v", got)
	}
}

// neededPrograms reads the programs in scripts/setup.sh's tables, and those that
// every Debian system has.
func neededPrograms(t *testing.T) map[string]bool {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(root, "scripts/setup.sh"))
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]bool{"sh": true, "sleep": true, "cat": true, "true": true, "nsenter": true, "unshare": true, "setpriv": true, "mount": true, "perl": true, "chrt": true, "taskset": true, "go": true}
	tables := regexp.MustCompile(`(?s)readonly (?:run|test|experiments)_needs='(.*?)'`).FindAllSubmatch(script, -1)
	for _, table := range tables {
		for _, line := range strings.Split(strings.TrimSpace(string(table[1])), "\n") {
			fields := strings.Fields(line)
			if len(fields) != 2 {
				t.Fatalf("scripts/setup.sh: %q is not a program and a package", line)
			}
			programs[fields[0]] = true
		}
	}
	return programs
}

// programsAskedFor maps each literal argument of testenv.Program to its place.
func programsAskedFor(t *testing.T, name string, content []byte) map[string]string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, content, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		fun, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || fun.Sel.Name != "Program" {
			return true
		}
		if pkg, ok := fun.X.(*ast.Ident); !ok || pkg.Name != "testenv" {
			return true
		}
		for _, arg := range call.Args {
			if lit, ok := arg.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if program, err := strconv.Unquote(lit.Value); err == nil {
					found[program] = fset.Position(lit.Pos()).String()
				}
			}
		}
		return true
	})
	return found
}
