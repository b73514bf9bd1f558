// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/telemetry"
	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
)

// columns is the terminal width in these tests.
const columns = 80

// onTerminal runs dray on a terminal of 80 columns, and returns its output.
func onTerminal(t *testing.T, args ...string) string {
	t.Helper()
	pty, err := host.OpenPty(columns, 24)
	if err != nil {
		t.Fatal(err)
	}
	defer pty.Master.Close()
	shown := make(chan string, 1)
	go func() {
		var b bytes.Buffer
		_, _ = io.Copy(&b, pty.Master) // it returns an error after the other end closes
		shown <- b.String()
	}()
	if err := run(context.Background(), args, pty.Slave, io.Discard); err != nil {
		t.Errorf("dray %s: %v", strings.Join(args, " "), err)
	}
	if err := pty.Slave.Close(); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(<-shown, "\r\n", "\n")
}

// fits fails the test for each line wider than the terminal.
func fits(t *testing.T, what, text string) {
	t.Helper()
	if strings.TrimSpace(text) == "" {
		t.Errorf("%s shows nothing", what)
	}
	for _, color := range []string{red, green, yellow, reset} {
		text = strings.ReplaceAll(text, color, "")
	}
	for _, line := range strings.Split(text, "\n") {
		if n := utf8.RuneCountInString(line); n > columns {
			t.Errorf("%s: a line has %d columns:\n%s", what, n, line)
		}
	}
}

func TestInspectionFitsTheTerminal(t *testing.T) {
	for _, args := range [][]string{
		{"plan", "../../examples/f1-split.yaml"}, {"plan", "--verbose", "../../examples/f1-split.yaml"}, {"plan", "--warn", "../../examples/two-hosts.yaml"}, {"plan", "--explain", "../../examples/placement.yaml"},
		{"doctor"}, {"doctor", "--fix", "--isolate", "1"}, {"bench", "--list"}, {"image"},
	} {
		fits(t, strings.Join(args, " "), onTerminal(t, args...))
	}
}

func TestHelpFitsTheTerminal(t *testing.T) {
	var commands [][]string
	var walk func(cmd *cobra.Command, path []string)
	walk = func(cmd *cobra.Command, path []string) {
		commands = append(commands, path)
		for _, sub := range cmd.Commands() {
			walk(sub, append(path[:len(path):len(path)], sub.Name()))
		}
	}
	walk(newRoot(&app{out: io.Discard, err: io.Discard}), nil)
	if len(commands) < 20 {
		t.Fatalf("only %d commands were found", len(commands))
	}
	for _, path := range commands {
		if len(path) > 0 && (path[0] == "relay" || path[0] == "spin") {
			continue // their arguments are read elsewhere
		}
		text := onTerminal(t, append(path, "--help")...)
		fits(t, strings.Join(path, " ")+" --help", text)
		if _, examples, ok := strings.Cut(text, "Examples:\n"); ok {
			for _, line := range strings.Split(strings.TrimSpace(strings.Split(examples, "\n\n")[0]), "\n") {
				if !strings.HasPrefix(line, "  dray ") && !strings.HasPrefix(line, "dray ") {
					t.Errorf("%s: an example is broken into lines:\n%s", strings.Join(path, " "), line)
				}
			}
		}
	}
}

// TestHelpIsAsWideInAPipe checks help as `dray --help | less` shows it.
func TestHelpIsAsWideInAPipe(t *testing.T) {
	var out bytes.Buffer
	if err := run(context.Background(), []string{"bench", "--help"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	fits(t, "bench --help", out.String())
}

// TestStatusFitsTheTerminal renders chains with every possible status.
func TestStatusFitsTheTerminal(t *testing.T) {
	s := chainStatus{
		Found: node.Found{Chain: "f1-split-native-on-shared-memory", Condition: node.Up, Detail: "made by dray up, since 2026-01-02 03:04:05"},
		Functions: []node.FunctionStatus{{
			Name: "central-unit-user-plane", Phase: node.PhaseFailed, Restarts: 17, Since: time.Unix(1e9, 0),
			Error: "exec: \"a-program-that-is-not-there\": executable file not found in $PATH",
		}},
		Grants: map[string]node.Grant{"central-unit-user-plane": {Compute: chain.Compute{Share: 0.375, Deadline: 12.5e6}, CPUs: []int{17}, Weight: 98304, Largest: 262144}},
		Links: []linkStatus{{
			Name: "f1u", way: "ovs-dpdk over vhost-user", Ends: []string{"distributed-unit.f1u", "central-unit-user-plane.f1u"},
			Error:   "process 12345 of the switch has ended",
			Revival: &node.Revival{Restarts: 3, Outage: time.Second, Since: time.Unix(1e9, 0)},
		}},
		Broker: &node.Broker{Restarts: 2, Since: time.Unix(1e9, 0)},
		Live:   liveLinks(),
	}
	var b bytes.Buffer
	if err := printStatus(&b, columns, []chainStatus{s}); err != nil {
		t.Fatal(err)
	}
	fits(t, "status", b.String())
}

func TestTopFitsTheTerminal(t *testing.T) {
	var b bytes.Buffer
	if err := live.Text(&b, liveLinks(), columns); err != nil {
		t.Fatal(err)
	}
	fits(t, "top", b.String())
}

func liveLinks() []live.Link {
	flow := telemetry.Flow{From: "distributed-unit.f1u", To: "central-unit-user-plane.f1u", Received: 123456789, Lost: 12345, Waiting: 4096, Interval: time.Second}
	return []live.Link{{
		Chain: "f1-split-native",
		Status: broker.LinkStatus{Ends: []broker.EndStatus{{Function: "central-unit-user-plane", Port: "f1u", Classes: &broker.ClassesStatus{
			Reported: true, Scheduler: "hfsc", Rate: 1e10, Classes: []broker.ClassStatus{{Name: "ultra-reliable-low-latency", Discipline: "fq_codel", Sent: 123456789}}}}},
			Name: "f1u", Kind: "shm", State: "waiting", Generation: 12, Pages: "huge", Bytes: 8 << 20, LastError: "the peer has closed its end"},
		Now: []telemetry.Flow{flow, flow},
		Verdicts: []verdict.Verdict{{
			Link: "f1u", Requirement: "packet_delay_variation", Required: verdict.Figure{Text: "≤ 10us at p99"},
			Measured: verdict.Figure{Text: "12.3us"}, Bound: verdict.Figure{Text: "13.4us"}, Verdict: verdict.NotMeasurable,
		}},
	}}
}

func TestColor(t *testing.T) {
	for _, c := range []struct {
		mode     colorMode
		terminal bool
		env      [2]string
		want     bool
	}{
		{colorAuto, true, [2]string{}, true},
		{colorAuto, false, [2]string{}, false},
		{colorAuto, true, [2]string{"NO_COLOR", "1"}, false},
		{colorAuto, true, [2]string{"TERM", "dumb"}, false},
		{colorAlways, false, [2]string{"NO_COLOR", "1"}, true},
		{colorNever, true, [2]string{}, false},
	} {
		t.Run("", func(t *testing.T) {
			t.Setenv("NO_COLOR", "")
			t.Setenv("TERM", "xterm")
			if c.env[0] != "" {
				t.Setenv(c.env[0], c.env[1])
			}
			var w io.Writer = io.Discard
			if c.terminal {
				pty, err := host.OpenPty(columns, 24)
				if err != nil {
					t.Fatal(err)
				}
				defer pty.Master.Close()
				defer pty.Slave.Close()
				w = pty.Slave
			}
			if got := c.mode.on(w); got != c.want {
				t.Errorf("%s on a terminal %v with %v: %v", c.mode, c.terminal, c.env, got)
			}
		})
	}
	if err := run(context.Background(), []string{"--color", "sometimes", "version"}, io.Discard, io.Discard); err == nil || exitCode(err, io.Discard) != exitUsage {
		t.Errorf("--color sometimes: %v", err)
	}
}

func TestPaint(t *testing.T) {
	text := "LINK  VERDICT\nf1u   met\nok    not measurable  missed\nall 3 were met, not missed\nfunction a  up, but 1 function not running\n"
	want := "LINK  VERDICT\nf1u   " + green + "met" + reset + "\n" + green + "ok" + reset + "    " + yellow + "not measurable" + reset +
		"  " + red + "missed" + reset + "\nall 3 were met, not missed\nfunction a  " + green + "up" + reset + ", but 1 function not running\n"
	if got := paint(text); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
