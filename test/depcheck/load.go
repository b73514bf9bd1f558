// SPDX-License-Identifier: Apache-2.0

package depcheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Load reads every package of the module whose root directory is given.
func Load(root, module string) ([]Package, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.Bytes())
	}
	var pkgs []Package
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var listed struct {
			ImportPath, Dir  string
			GoFiles, Imports []string
		}
		if err := dec.Decode(&listed); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		p := Package{Path: strings.TrimPrefix(listed.ImportPath, module+"/"), Imports: listed.Imports}
		for _, name := range listed.GoFiles {
			content, err := os.ReadFile(filepath.Join(listed.Dir, name))
			if err != nil {
				return nil, err
			}
			p.Lines += bytes.Count(content, []byte("\n"))
			calls, err := systemCalls(filepath.Join(listed.Dir, name))
			if err != nil {
				return nil, err
			}
			p.Calls = append(p.Calls, calls...)
		}
		pkgs = append(pkgs, p)
	}
}

// systemCalls finds a file's uses of the packages unix, syscall, os, os/exec and net, by any
// import name. A struct that is written out has braces after its name: "exec.Cmd{}".
func systemCalls(file string) ([]Call, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	names := map[string]string{} // local name → canonical name
	for _, spec := range parsed.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		canonical := map[string]string{"golang.org/x/sys/unix": "unix", "syscall": "syscall", "os": "os", "os/exec": "exec", "net": "net"}[path]
		if canonical == "" {
			continue
		}
		local := canonical
		if spec.Name != nil {
			local = spec.Name.Name
		}
		names[local] = canonical
	}
	var calls []Call
	add := func(e ast.Expr, suffix string) {
		sel, ok := e.(*ast.SelectorExpr)
		if !ok {
			return
		}
		if x, ok := sel.X.(*ast.Ident); ok && names[x.Name] != "" {
			calls = append(calls, Call{names[x.Name] + "." + sel.Sel.Name + suffix, fset.Position(sel.Pos()).String()})
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			add(n.Type, "{}")
		case *ast.SelectorExpr:
			add(n, "")
		}
		return true
	})
	return calls, nil
}
