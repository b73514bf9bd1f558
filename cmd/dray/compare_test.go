// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
)

// runDirectory makes a directory with a run's records, with a throughput near bits
// (bit/s).
func runDirectory(t *testing.T, id string, bits uint64) string {
	t.Helper()
	dir := t.TempDir()
	w, err := record.Create(filepath.Join(dir, report.RecordsFile))
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(5) {
		err := w.Write(record.Trial{
			Run: id, ID: fmt.Sprintf("t-r%d", i), Chain: "c", Link: "l", From: "a.p", To: "b.p", Transport: "veth", Quantity: record.QThroughput,
			Start: time.Unix(1_800_000_000, 0), Duration: time.Second, Throughput: &record.Throughput{BitsPerSecond: bits + i*bits/1000},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func dray(args ...string) (string, error) {
	var out bytes.Buffer
	err := run(context.Background(), args, &out, io.Discard)
	return out.String(), err
}

func TestCompareCommand(t *testing.T) {
	slow, fast, like := runDirectory(t, "slow", 1e9), runDirectory(t, "fast", 2e9), runDirectory(t, "like", 4e9)
	out, err := dray("compare", slow, fast)
	if err != nil || !strings.Contains(out, "1 better, 0 worse") {
		t.Errorf("%v:\n%s", err, out)
	}
	out, err = dray("compare", slow, filepath.Join(fast, report.RecordsFile), "--same", like)
	if err != nil || !strings.Contains(out, "1 indistinguishable") || !strings.Contains(out, "runs of A differ by as much") {
		t.Errorf("with a run like A that is four times as fast: %v:\n%s", err, out)
	}
	out, err = dray("compare", slow, fast, "--json")
	var got struct{ Rows []struct{ Outcome string } }
	if err == nil {
		err = json.Unmarshal([]byte(out), &got)
	}
	if err != nil || len(got.Rows) != 1 || got.Rows[0].Outcome != "better" {
		t.Errorf("%v: %+v", err, got)
	}
	out, err = dray("compare", slow, "--format", "benchstat")
	if err != nil || strings.Count(out, "\nBenchmarkThroughput/") != 5 || strings.Contains(out, "\nrun: ") {
		t.Errorf("one run for benchstat: %v:\n%s", err, out)
	}
	out, err = dray("compare", slow, fast, "--format", "benchstat")
	if err != nil || strings.Count(out, "\nBenchmarkThroughput/") != 10 || !strings.Contains(out, "\nrun: fast\n") {
		t.Errorf("two runs for benchstat: %v:\n%s", err, out)
	}
}

func TestCompareCommandRefuses(t *testing.T) {
	dir := runDirectory(t, "a", 1e9)
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{dir}, exitUsage},
		{[]string{dir, dir, dir}, exitUsage},
		{[]string{dir, dir, "--format", "xml"}, exitUsage},
		{[]string{dir, dir, "--format", "benchstat", "--json"}, exitUsage},
		{[]string{dir, "--format", "benchstat", "--same", dir}, exitUsage},
		{[]string{dir, dir}, exitError},
		{[]string{dir, filepath.Join(dir, "none")}, exitError},
	} {
		_, err := dray(append([]string{"compare"}, c.args...)...)
		if code := exitCode(err, io.Discard); code != c.code {
			t.Errorf("compare %q: exit code %d (%v), want %d", c.args, code, err, c.code)
		}
	}
}
