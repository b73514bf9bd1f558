// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the dray program itself: real containers, real kernel
// links, real traffic, real faults.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// program is the static dray binary under test.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "dray-e2e-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// A machine's emulator is an ordinary user, and shows the machine this directory.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	program = filepath.Join(dir, "dray")
	// Like make build, which has compiled all of it.
	build := exec.Command("go", "build", "-trimpath", "-o", program, "github.com/drayage/dray/cmd/dray")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build dray: %v\n%s", err, out)
		return 1
	}
	// make build puts programs not written in Go, such as draygen, here.
	bin, err := filepath.Abs("../../bin")
	if err == nil {
		err = os.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// bench is one test's dray, with its own state directory.
type bench struct {
	t     *testing.T
	state string
	env   []string // next to DRAY_STATE
}

// newBench skips without root, and fails the test if anything is left over.
func newBench(t *testing.T) *bench {
	t.Helper()
	testenv.Root(t)
	testenv.Built(t, "draygen")
	state, err := os.MkdirTemp("/run", "dray-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(state, 0o711); err != nil {
		t.Fatal(err)
	}
	testenv.NoLeaks(t, filepath.Base(state))
	b := &bench{t: t, state: state}
	t.Cleanup(b.clear)
	return b
}

// clear takes every chain down, and removes the state directory.
func (b *bench) clear() {
	_ = os.RemoveAll(filepath.Join(b.state, ".failed")) // the logs of chains that did not come up
	entries, err := os.ReadDir(b.state)
	if err != nil {
		b.t.Error(err)
	}
	for _, e := range entries {
		if e.IsDir() && b.t.Failed() {
			b.t.Logf("after the failure, dray down %s: %s", e.Name(), b.dray("down", e.Name()))
		} else if e.IsDir() {
			b.t.Errorf("%s is left in the state directory", e.Name())
			b.dray("down", e.Name())
		}
	}
	for _, note := range []string{".lock", ".measuring", ".preparing", ".ran", "calibration.json"} { // these outlive chains
		_ = os.Remove(filepath.Join(b.state, note))
	}
	if err := os.Remove(b.state); err != nil {
		b.t.Error(err)
	}
}

// result is the outcome of one run of dray.
type result struct {
	Code        int
	Stdout, Err string
}

func (r result) String() string {
	return fmt.Sprintf("exit %d\nstdout:\n%s\nstderr:\n%s", r.Code, r.Stdout, r.Err)
}

func (b *bench) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(append(os.Environ(), "DRAY_STATE="+b.state), b.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// longest is the time limit of a command.
const longest = 4 * time.Minute

// dray runs the program to its end.
func (b *bench) dray(args ...string) result {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	return b.ended(b.command(ctx, args...))
}

// ended runs a command to its end.
func (b *bench) ended(cmd *exec.Cmd) result {
	b.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatalf("%s: %v", strings.Join(cmd.Args, " "), err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// want runs the program and fails the test unless it exits with code.
func (b *bench) want(code int, args ...string) result {
	b.t.Helper()
	r := b.dray(args...)
	if r.Code != code {
		b.t.Fatalf("dray %s: want exit %d\n%s", strings.Join(args, " "), code, r)
	}
	return r
}

// measure runs a command that judges links, and fails the test unless it exits
// with code. A busy machine can leave a verdict open, or delay a sound link's packets, so it
// retries with twice the rounds, up to most. Any other exit is final. It also returns the
// last run's directory.
func (b *bench) measure(code int, args ...string) (result, string) {
	b.t.Helper()
	var r result
	var out string
	for rounds := fewest; rounds <= most; rounds *= 2 {
		out = filepath.Join(b.t.TempDir(), "out")
		r = b.dray(append(args, "--rounds", strconv.Itoa(rounds), "--duration", "1s", "--out", out)...)
		if disturbed := r.Code == undecided || code == 0 && r.Code == missed; !disturbed {
			break
		}
		b.t.Logf("%d rounds: %s", rounds, r)
	}
	if r.Code != code {
		b.t.Fatalf("dray %s: want exit %d\n%s", strings.Join(args, " "), code, r)
	}
	return r, out
}

// measure's first and last number of rounds.
const fewest, most = 3, 12

// The exit status of a run that missed a requirement, and of one that missed none but left
// a verdict open.
const missed, undecided = 4, 5

// file writes a chain file of the test's own.
func (b *bench) file(text string) string {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "chain.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// example is a chain file in the examples directory.
func example(name string) string { return filepath.Join("..", "..", "examples", name) }

// decode reads a command's JSON output.
func decode[T any](t *testing.T, r result) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(r.Stdout), &v); err != nil {
		t.Fatalf("output is not the expected JSON: %v\n%s", err, r)
	}
	return v
}

// decodeChains decodes the chains of `dray status --json`.
func decodeChains[T any](t *testing.T, r result) []T {
	t.Helper()
	return decode[struct{ Chains []T }](t, r).Chains
}
