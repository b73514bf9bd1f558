// SPDX-License-Identifier: Apache-2.0

package style

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSequentialPackagesStartNoGoroutine verifies scripts/test.sh's claim about the
// packages that it tests without the race detector.
func TestSequentialPackagesStartNoGoroutine(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, "scripts/test.sh"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^readonly sequential='(.*)'$`).FindSubmatch(script)
	if line == nil {
		t.Fatal("scripts/test.sh names no sequential packages")
	}
	sequential := regexp.MustCompile(string(line[1]))
	seen := 0
	for _, name := range trackedFiles(t) {
		if !strings.HasSuffix(name, ".go") || !sequential.MatchString("/"+filepath.Dir(name)) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue
		}
		seen++
		for _, position := range goroutines(t, name, content) {
			t.Errorf("%s: its package is tested without the race detector, but starts a goroutine", position)
		}
	}
	if seen < 10 {
		t.Errorf("only %d files are in sequential packages", seen)
	}
}

func TestGoroutines(t *testing.T) {
	source := "package x\n\nfunc f() {\n\tgo f()\n\twg.Go(f)\n\tt.Parallel()\n\tf()\n}\n"
	if got := goroutines(t, "x.go", []byte(source)); len(got) != 3 {
		t.Errorf("got %v", got)
	}
}

// goroutines are the places where a file starts one.
func goroutines(t *testing.T, name string, content []byte) (positions []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, content, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		starts := false
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.CallExpr:
			method, ok := n.Fun.(*ast.SelectorExpr)
			starts = ok && (method.Sel.Name == "Go" || method.Sel.Name == "Parallel")
		}
		if starts {
			positions = append(positions, files.Position(n.Pos()).String())
		}
		return true
	})
	return positions
}
