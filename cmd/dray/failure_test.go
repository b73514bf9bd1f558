// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/drayage/dray/internal/host"
)

// errorDocument runs dray and decodes its output, which must be one failure.
func errorDocument(t *testing.T, args ...string) (failure, int) {
	t.Helper()
	var out, errs bytes.Buffer
	err := run(context.Background(), args, &out, &errs)
	var got struct {
		Schema string
		failure
	}
	if bad := json.Unmarshal(out.Bytes(), &got); bad != nil || got.Schema != schemaError || got.Error == "" {
		t.Fatalf("dray %q: %v: %+v\n%s", args, bad, got, out.String())
	}
	code := exitCode(err, &errs)
	if code != got.Exit {
		t.Errorf("dray %q: exits %d, and its document says %d", args, code, got.Exit)
	}
	if errs.Len() > 0 {
		t.Errorf("dray %q also writes %q", args, errs.String())
	}
	return got.failure, code
}

func TestFailuresAreDocuments(t *testing.T) {
	none := t.TempDir()
	for _, c := range []struct {
		code int
		args []string
	}{
		{exitUsage, []string{"--json", "nothing"}},
		{exitUsage, []string{"report", "--json"}},
		{exitUsage, []string{"report", "--nothing", "--json"}},
		{exitUsage, []string{"compare", none, "--json"}},
		{exitError, []string{"report", none + "/none", "--json"}},
		{exitError, []string{"compare", none, none, "--json"}},
		{exitError, []string{"plan", none + "/none.yaml", "--json"}},
		{exitError, []string{"bench", none + "/none.yaml", "--dry-run", "--json"}},
	} {
		if _, code := errorDocument(t, c.args...); code != c.code {
			t.Errorf("dray %q: exit code %d, want %d", c.args, code, c.code)
		}
	}
}

func TestFailureNamesItsFix(t *testing.T) {
	for _, c := range []struct {
		err  error
		want failure
	}{
		{errors.New("x"), failure{"x", "", exitError}},
		{usageError("y"), failure{"y", "", exitUsage}},
		{&fixableError{"must be root", "sudo dray up"}, failure{"must be root", "sudo dray up", exitError}},
		{fmt.Errorf("link l: %w", &host.Unsupported{What: "veth", Why: "no", Fix: "modprobe veth"}),
			failure{"link l: veth: unsupported: no (modprobe veth)", "modprobe veth", exitError}},
	} {
		if got := failureOf(c.err); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.err, got, c.want)
		}
	}
}

// closedPipe is a standard output without a reader.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: os.Stdout.Name(), Err: syscall.EPIPE}
}

func TestReaderThatLeavesIsNoFailure(t *testing.T) {
	dir := runDirectory(t, "a", 1e9)
	for _, args := range [][]string{{"compare", dir, "--format", "benchstat"}, {"bench", "quick", "--dry-run", "--json"}} {
		var errs strings.Builder
		err := run(context.Background(), append(args, "--quiet"), closedPipe{}, &errs)
		if code := exitCode(err, &errs); code != exitOK || errs.Len() > 0 {
			t.Errorf("dray %q: exit code %d: %s", args, code, errs.String())
		}
	}
	closed, coded := &fs.PathError{Op: "write", Path: os.Stdout.Name(), Err: syscall.EPIPE}, &codeError{exitInfeasible, errors.New("infeasible")}
	for _, c := range []struct {
		err  error
		want int
	}{
		{fmt.Errorf("write tables: %w", closed), exitOK},
		{errors.Join(coded, closed), exitInfeasible},
		{&fs.PathError{Op: "write", Path: "/run/file", Err: syscall.EPIPE}, exitError},
	} {
		if code := exitCode(withoutClosedOutput(c.err), io.Discard); code != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, code, c.want)
		}
	}
}

func TestDocument(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{struct{}{}, `{"schema":"s/1"}`},
		{map[string]int{"a": 1}, `{"schema":"s/1","a":1}`},
		{json.RawMessage("{\n \"schema\": 1,\n \"a\": 2}"), `{"schema":"s/1","a":2}`},
		{[]int{}, ""},
	} {
		got, err := withSchema("s/1", c.v)
		if string(got) != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%v: %s, %v", c.v, got, err)
		}
	}
}

func TestCheckRoot(t *testing.T) {
	for _, c := range []struct {
		line string
		user int
		ok   bool
	}{
		{"up x.yaml", 0, true}, {"up x.yaml", 1000, false}, {"plan x.yaml", 1000, true}, {"bench quick", 1000, false},
		{"bench quick --dry-run", 1000, true}, {"bench quick --dry-run=false", 1000, false}, {"bench --list", 1000, true},
		{"image", 1000, true}, {"image iperf", 1000, false}, {"version", 1000, true},
	} {
		a := &app{out: io.Discard, err: io.Discard, argv: strings.Fields(c.line)}
		root := newRoot(a)
		cmd, rest, err := root.Find(a.argv)
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil {
			t.Fatal(err)
		}
		err = a.checkRoot(cmd, c.user)
		if (err == nil) != c.ok {
			t.Errorf("dray %s as user %d: %v", c.line, c.user, err)
		}
		// A test program is in no folder that sudo knows.
		if want := "must be root; try: sudo " + os.Args[0] + " " + c.line; err != nil && err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

// Every schema of this program is described, and nothing else.
func TestDocumentsAreDescribed(t *testing.T) {
	described, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("json.go")
	if err != nil {
		t.Fatal(err)
	}
	in := func(pattern string, text []byte) []string {
		var names []string
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
		slices.Sort(names)
		return names
	}
	want, got := in(`= "(dray\.[a-z-]+/[0-9]+)"`, source), in("(?m)^\\| `(dray\\.[a-z-]+/[0-9]+)` \\|", described)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("docs/json.md describes %v\nthis program prints %v", got, want)
	}
}
