// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// victim describes the work of a process that is killed: "apply" or "revert", the root, the state directory,
// the number of huge pages if the root is this machine's, and the point of its death.
const victim = "DRAY_TEST_PREPARE"

func TestMain(m *testing.M) {
	if job := os.Getenv(victim); job != "" {
		if err := die(strings.Fields(job)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func die(job []string) error {
	var s *System
	var r Request
	pages, err := strconv.Atoi(job[3])
	if err != nil {
		return err
	}
	if job[1] == "/" {
		if s, err = Host(); err != nil {
			return err
		}
		r = Request{HugePages: []Pages{{page2M, pages}}}
	} else {
		s = fakeAt(job[1])
		r = everything(s)
	}
	left, err := strconv.Atoi(job[4])
	if err != nil {
		return err
	}
	s.fault = func(string) {
		if left--; left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // it cannot fail
			select {}
		}
	}
	if job[0] == "apply" {
		_, err = s.Apply(context.Background(), job[2], r)
	} else {
		_, err = s.Revert(context.Background(), job[2])
	}
	return err
}

// killedAt runs the job until its nth point; false if it ended before.
func killedAt(t *testing.T, what, root, state string, pages, n int) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %d %d", victim, what, root, state, pages, n))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return false
}

// Wherever SIGKILL ends an application, or the undoing of one, another undoing restores every value.
func TestKilledAnywhere(t *testing.T) {
	s, state := newFake(t, nil), t.TempDir()
	before := snapshot(t, s)
	for _, what := range []string{"apply", "revert"} {
		n := 1
		for ; ; n++ {
			if what == "revert" {
				_, err := s.Apply(context.Background(), state, everything(s))
				testenv.Must(t, err)
			}
			killed := killedAt(t, what, s.root, state, 0, n)
			_, err := s.Revert(context.Background(), state)
			testenv.Must(t, err)
			if diff := cmp.Diff(before, snapshot(t, s)); diff != "" {
				t.Fatalf("%s, killed at point %d: %s", what, n, diff)
			}
			if !killed {
				break
			}
		}
		if least := map[string]int{"apply": 34, "revert": 12}[what]; n < least {
			t.Errorf("%s has %d points, fewer than %d", what, n, least)
		}
	}
}

// The same with this machine's huge pages.
func TestKilledWithRealHugePages(t *testing.T) {
	testenv.Root(t)
	s, err := Host()
	testenv.Must(t, err)
	key := Key{Kind: kindHugePages, Size: page2M}
	testenv.HugePages(t, 2) // the kernel has them to give
	lock, err := os.Open(filepath.Dir("/" + key.file()))
	testenv.Must(t, err)
	defer lock.Close()
	testenv.Must(t, host.Lock(context.Background(), lock, syscall.LOCK_EX)) // other tests change the number too
	text, err := s.value(key)
	testenv.Must(t, err)
	before, err := strconv.Atoi(text)
	testenv.Must(t, err)
	defer func() { testenv.Must(t, s.set(key.file(), text)) }() // while the lock is held
	for i, during := range []int{before, before + 2, before + 2, before + 2} {
		n, state := i+1, t.TempDir()
		if killed := killedAt(t, "apply", "/", state, before+2, n); killed != (n < 4) {
			t.Errorf("killed at point %d: %v", n, killed)
		}
		if now, err := s.value(key); err != nil || now != strconv.Itoa(during) {
			t.Errorf("killed at point %d, there are %s pages, want %d: %v", n, now, during, err)
		}
		_, err := s.Revert(context.Background(), state)
		testenv.Must(t, err)
		if now, err := s.value(key); err != nil || now != text {
			t.Errorf("killed at point %d, then undone: %s pages, want %s: %v", n, now, text, err)
		}
	}
}
