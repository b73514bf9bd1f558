// SPDX-License-Identifier: Apache-2.0

package spinner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain is also the program: its threads spin until they are killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "spin" {
		if err := Main(os.Args[2:], os.Stdin, os.Stdout); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// allowed is a CPU that this process may use.
func allowed(t *testing.T) int {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := range 8 * len(set) {
		if set.IsSet(cpu) {
			return cpu
		}
	}
	t.Fatal("no CPU")
	return 0
}

// Two spinners on one CPU get about half each, and see that they wait.
func TestSpinnersShareACPU(t *testing.T) {
	cpu, length := allowed(t), 400*time.Millisecond
	type one struct {
		in  io.Closer
		out *bufio.Reader
	}
	var both [2]one
	for i := range both {
		cmd := exec.Command(os.Args[0], Argv([]int{cpu}, length, time.Minute)...)
		in, err1 := cmd.StdinPipe()
		out, err2 := cmd.StdoutPipe()
		if err := errors.Join(err1, err2, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		// It goes on spinning: the other one's share must not grow.
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		both[i] = one{in, bufio.NewReader(out)}
	}
	for i := range both {
		if line, err := both[i].out.ReadString('\n'); line != Ready+"\n" {
			t.Fatalf("%q: %v", line, err)
		}
	}
	for i := range both {
		_ = both[i].in.Close()
	}
	sum := 0.0
	for i := range both {
		line, err := both[i].out.ReadString('\n')
		var r Result
		if err := errors.Join(err, json.Unmarshal([]byte(line), &r)); err != nil || len(r.Threads) != 1 {
			t.Fatalf("%q: %v", line, err)
		}
		got := r.Threads[0]
		if got.CPU != cpu || got.Wall < length || got.Time <= 0 || got.Time > got.Wall || got.Longest <= 0 || got.Longest > got.Wall {
			t.Errorf("%+v", got)
		}
		// What it did not get, it waited for: in parts, none longer than all.
		if missing := got.Wall - got.Time; missing > got.Wall/10 && got.Longest < 100*time.Microsecond {
			t.Errorf("%v without the CPU, and no wait over %v", missing, got.Longest)
		}
		sum += float64(got.Time) / float64(got.Wall)
	}
	if sum > 1.3 {
		t.Errorf("together they got %.2f of one CPU", sum)
	}
}

func TestSpinnerRefuses(t *testing.T) {
	for want, argv := range map[string][]string{
		"name CPUs":         {"--for", "1s"},
		"flag provided but": {"--cpu", "1"},
		"spin on CPU 8000":  {"--cpus", "8000"},
	} {
		if err := Main(argv, strings.NewReader(""), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", argv, err)
		}
	}
	runtime.GOMAXPROCS(runtime.NumCPU())
}

// TestASpinnerEndsByItself: it must not spin for ever if nothing kills it.
func TestASpinnerEndsByItself(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], Argv([]int{allowed(t)}, 10*time.Millisecond, time.Second)...)
	out, err := cmd.Output()
	if !cmd.ProcessState.Exited() {
		t.Errorf("%v, and it said %q", err, out)
	}
}
