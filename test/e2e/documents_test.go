// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Every command prints one JSON object that names its schema, and docs/json.md
// describes it.
func TestDocuments(t *testing.T) {
	t.Parallel()
	described, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	file := b.file(pair{Name: "json", Face: "native", Command: "[sleep, '1000']"}.yaml())
	for _, c := range []struct{ line, schema string }{
		{"doctor", "dray.inventory/1"}, {"doctor --fix", "dray.preparation/1"}, {"doctor --revert", "dray.preparation/1"}, {"plan " + file, "dray.plan/1"},
		{"up " + file, "dray.chain/1"}, {"status", "dray.status/1"}, {"relink json ab veth", "dray.link/1"},
		{"top --samples 1", "dray.sample/1"},
		{"down json", "dray.chain/1"}, {"gc", "dray.removed/1"}, {"image", "dray.images/1"},
		{"bench --list", "dray.bench-list/1"}, {"bench quick --dry-run", "dray.bench-plan/1"}, {"bench v19-switches --dry-run", "dray.experiments-plan/1"},
	} {
		r := b.want(0, append(strings.Fields(c.line), "--json")...)
		if strings.HasPrefix(c.line, "top ") {
			r.Stdout, _, _ = strings.Cut(r.Stdout, "\n") // of several
		}
		if got := decode[struct{ Schema string }](t, r).Schema; got != c.schema {
			t.Errorf("dray %s prints schema %q, want %q", c.line, got, c.schema)
		}
		if !strings.Contains(string(described), "`"+c.schema+"`") {
			t.Errorf("docs/json.md does not describe %s", c.schema)
		}
	}
	r := b.want(1, "down", "json", "--json")
	if got := decode[struct{ Schema, Error string }](t, r); got.Schema != "dray.error/1" || !strings.Contains(got.Error, "json") {
		t.Errorf("%s", r)
	}
}

// status shows the supervisor's process.
func TestStatusShowsTheSupervisor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.want(0, "up", b.file(pair{Name: "watch", Command: "[sleep, '1000']"}.yaml()))
	defer b.want(0, "down", "watch")
	type status struct {
		Supervised bool
		Supervisor struct{ PID int }
	}
	s := decodeChains[status](t, b.want(0, "status", "watch", "--json"))
	if len(s) != 1 || !s[0].Supervised || s[0].Supervisor.PID == 0 {
		t.Fatalf("%+v", s)
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s[0].Supervisor.PID))
	if err != nil || !strings.Contains(string(line), "supervise\x00watch") {
		t.Errorf("process %d is %q: %v", s[0].Supervisor.PID, line, err)
	}
	if r := b.want(0, "status"); !strings.Contains(r.Stdout, fmt.Sprintf("process %d", s[0].Supervisor.PID)) {
		t.Errorf("%s", r)
	}
}

// As with other tools, a reader that leaves early is no failure.
func TestPipeIntoHead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, line := range []string{"doctor", "doctor --json", "bench --list", "status --json"} {
		cmd := exec.Command("bash", "-c", `"$0" "$@" | : ; exit "${PIPESTATUS[0]}"`, program)
		cmd.Args = append(cmd.Args, append(strings.Fields(line), "--quiet")...)
		cmd.Env = append(os.Environ(), "DRAY_STATE="+b.state)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("dray %s | : %v: %s", line, err, out)
		}
	}
}
