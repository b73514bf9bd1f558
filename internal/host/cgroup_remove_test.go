// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	entered  = "DRAY_TEST_ENTERED"  // the cgroup that a test's other process enters with one thread
	headless = "DRAY_TEST_HEADLESS" // set: the main thread ends, and no other (see TestMain)
)

// On v1 a process that starts a program in a cgroup enters it with a thread, and the
// kernel lists the whole process there: it must live on.
func TestCgroupKillSparesOthersThreads(t *testing.T) {
	if path := os.Getenv(entered); path != "" {
		must(t, onOwnThread(func() error {
			err := Cgroup{Path: path}.joinThread()
			fmt.Println(entered)
			_, _ = io.Copy(io.Discard, os.Stdin)
			return err
		}))
		return
	}
	c := testCgroup(t)
	if describeMode(t) == "v2" {
		t.Skip("no thread enters a cgroup of v2")
	}
	must(t, c.Create(Limits{}))
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), entered+"="+c.Path)
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(stdout); lines.Text() != entered; {
		if !lines.Scan() {
			t.Fatal("the other process has entered no cgroup")
		}
	}
	if pids, err := c.Processes(); err != nil || len(pids) > 0 {
		t.Errorf("processes %v count as in the cgroup (%v)", pids, err)
	}
	must(t, c.Kill(context.Background()))
	must(t, stdin.Close())
	_, _ = io.Copy(io.Discard, stdout)
	if err := cmd.Wait(); err != nil {
		t.Errorf("a process that only had a thread there: %v", err)
	}
}

// A program whose main thread has ended is still killed.
func TestCgroupKillsWithoutMainThread(t *testing.T) {
	c := testCgroup(t)
	must(t, c.Create(Limits{}))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), headless+"=1")
	must(t, Place{Cgroup: c}.Start(cmd))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	waitFor(t, "the main thread to end", func() bool {
		_, err := statFields(cmd.Process.Pid)
		return errors.Is(err, errExited)
	})
	dirs, err := c.dirs()
	must(t, err)
	for _, dir := range dirs {
		if pids, err := processesBelow(dir); err != nil || !slices.Contains(pids, cmd.Process.Pid) {
			t.Errorf("process %d is not among %v of %s (%v)", cmd.Process.Pid, pids, dir, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), killPatience)
	defer cancel()
	must(t, c.Kill(ctx))
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != unix.SIGKILL {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
}

// TestWhereabouts names the program, and what it waits in. A name does not write
// to the terminal.
func TestWhereabouts(t *testing.T) {
	name := "sleep\x1b[2J"
	sleep, err := exec.LookPath("sleep")
	must(t, err)
	program := filepath.Join(t.TempDir(), name)
	must(t, os.Symlink(sleep, program))
	cmd := exec.Command(program, "1000")
	must(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	want := fmt.Sprintf("%d, %q, [S (sleeping)", cmd.Process.Pid, name)
	waitFor(t, want, func() bool { return strings.HasPrefix(whereabouts([]int{cmd.Process.Pid}), want) })
}

// The thread that starts a program in a v1 cgroup may end late.
func TestCgroupRemovalAwaitsThreads(t *testing.T) {
	c := testCgroup(t)
	if describeMode(t) == "v2" {
		t.Skip("no thread enters a cgroup of v2")
	}
	must(t, c.Create(Limits{}))
	in, leave := make(chan error, 1), make(chan struct{})
	go func() {
		_ = onOwnThread(func() error {
			in <- c.joinThread()
			<-leave
			return nil
		})
	}()
	must(t, <-in)
	removed := make(chan error, 1)
	go func() { removed <- removeCgroup(context.Background(), c.Path) }()
	select {
	case err := <-removed:
		t.Errorf("the removal does not wait: %v", err)
		close(leave)
	case <-time.After(1500 * time.Millisecond):
		close(leave)
		must(t, <-removed)
	}
}
