// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChainFromStandardInput plans and brings up a chain that init writes to a pipe, and
// completes the names of running parts.
func TestChainFromStandardInput(t *testing.T) {
	b := newBench(t)
	starter := b.want(0, "init", "-", "--runtime", "process").Stdout
	dray := func(code int, args ...string) string {
		t.Helper()
		cmd := b.command(context.Background(), args...)
		cmd.Stdin = strings.NewReader(starter)
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Fatalf("dray %s: status %d, want %d\n%s%s", strings.Join(args, " "), got, code, out.String(), errs.String())
		}
		return out.String() + errs.String()
	}
	if text := dray(0, "plan", "-"); !strings.Contains(text, "chain starter on ") {
		t.Errorf("plan of standard input shows\n%s", text)
	}
	text := dray(0, "up", "-", "-v")
	defer b.want(0, "down", "starter")
	for _, want := range []string{"msg=probe name=veth status=", "msg=step name=", "msg=run argv="} {
		if !strings.Contains(text, want) {
			t.Errorf("dray up -v does not log %q:\n%s", want, text)
		}
	}
	if shown := b.want(0, "status"); strings.Contains(shown.Err, "msg=") {
		t.Errorf("a command without -v logs:\n%s", shown)
	}
	for _, c := range [][]string{
		{"starter", "down", ""}, {"cu-up\ndu", "logs", "starter", ""}, {"cu-up.f1u\ndu.f1u", "capture", "starter", ""}, {"f1u", "relink", "starter", ""},
	} {
		offered := strings.Split(strings.TrimSpace(b.want(0, append([]string{"__complete"}, c[1:]...)...).Stdout), "\n")
		for _, want := range strings.Split(c[0], "\n") {
			if !strings.Contains("\n"+strings.Join(offered, "\n")+"\n", "\n"+want+"\n") {
				t.Errorf("%v is completed by %q; want %s", c[1:], offered, want)
			}
		}
	}
}

// TestInitKeepsAFile refuses to overwrite a file.
func TestInitKeepsAFile(t *testing.T) {
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "chain.yaml")
	b.want(0, "init", file)
	if err := os.WriteFile(file, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.want(1, "init", file)
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("the file holds %q, error %v", text, err)
	}
}
