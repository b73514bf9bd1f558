// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/spec/inventory"
)

// script is an executable file.
func script(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool")
	must(t, os.WriteFile(path, []byte(text), mode))
	must(t, os.Chmod(path, mode))
	return path
}

// TestAHelpersErrorSaysWhatHappened, and suggests to install only what is absent.
func TestAHelpersErrorSaysWhatHappened(t *testing.T) {
	good := "#!/bin/sh\n"
	for name, c := range map[string]struct {
		helper Helper
		status inventory.Status
		why    string
		fix    string
	}{
		"absent": {
			Helper{Program: "no-such-tool", Package: "tools"}, inventory.Missing,
			"the program no-such-tool is not installed", "apt install tools",
		},
		"absent, without a package": {Helper{Program: "no-such-tool"}, inventory.Missing, "the program no-such-tool is not installed", ""},
		"silent": {
			Helper{Program: script(t, good+"exec sleep 1000", 0o755), Limit: 50 * time.Millisecond}, inventory.Unknown,
			"tool: no answer within 50ms", "",
		},
		"not executable": {
			Helper{Program: script(t, good, 0o644), Package: "tools"}, inventory.Unknown,
			"may not be executed", "check its mode, and that its file system is not mounted noexec",
		},
		"of another machine": {
			Helper{Program: script(t, "\x7fELF nonsense", 0o755), Package: "tools"}, inventory.Unknown,
			"is no program that this machine can execute", "install it again, for this machine's architecture",
		},
		"without its interpreter": {
			Helper{Program: script(t, "#!/no/such/shell\n", 0o755), Package: "tools"}, inventory.Unknown,
			"its interpreter or loader does not exist", "install it again",
		},
		"with words of its own": {
			Helper{Program: script(t, good+"echo out; echo first >&2; echo the last >&2; exit 3", 0o755), Args: []string{"--version"}, Package: "tools"}, inventory.Unknown,
			"tool --version: exit status 3: first; the last", "",
		},
		"killed": {Helper{Program: script(t, good+"kill -9 $$", 0o755)}, inventory.Unknown, "tool: signal: killed", ""},
	} {
		_, err := c.helper.Run(context.Background())
		item := ProbeItem("x", err)
		if item.Status != c.status || !strings.Contains(item.Reason, c.why) || item.Fix != c.fix {
			t.Errorf("%s: %+v", name, item)
		}
	}
}

// TestAHelperWithoutDescriptors: the limit is this process's, so another one asks.
func TestAHelperWithoutDescriptors(t *testing.T) {
	if os.Getenv("DRAY_TEST_NO_FILES") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestAHelperWithoutDescriptors$", "-test.v")
		cmd.Env = append(os.Environ(), "DRAY_TEST_NO_FILES=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 16, Max: 16}))
	for {
		if _, err := os.Open("/dev/null"); err != nil {
			break
		}
	}
	_, err := Helper{Program: "true", Package: "coreutils"}.Run(context.Background())
	item := ProbeItem("x", err)
	if item.Status != inventory.Unknown || !strings.Contains(item.Reason, "too many open files") || !strings.Contains(item.Fix, "ulimit -n 4096; it is 16") {
		t.Errorf("%+v", item)
	}
}

// TestAChildOfAHelperIsNotWaitedFor: it holds the output of a helper that has ended. A child of a
// helper whose caller no longer waits is killed with it.
func TestAChildOfAHelperIsNotWaitedFor(t *testing.T) {
	for _, end := range []string{"", "wait"} {
		file := filepath.Join(t.TempDir(), "pid")
		ctx, cancel := context.WithCancel(context.Background())
		h := Helper{Program: script(t, "#!/bin/sh\nsleep 1000 &\necho $! >"+file+".new\nmv "+file+".new "+file+"\necho done\n"+end, 0o755)}
		go func() {
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
				if _, err := os.Stat(file); err == nil {
					break
				}
			}
			if end != "" {
				cancel()
			}
		}()
		answer, err := h.Run(ctx)
		cancel()
		if end == "" && (err != nil || answer.Out != "done\n") || end != "" && !errors.Is(err, context.Canceled) {
			t.Errorf("%q: %q, %v", end, answer.Out, err)
		}
		text, err := os.ReadFile(file)
		must(t, err)
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		must(t, err)
		if end != "" {
			awaitEnd(t, pid)
		} else if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Errorf("its child was waited for: %v", err)
		}
	}
}

// awaitEnd waits until a process runs no more, which the kernel does at leisure.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	id, err := Identify(pid)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, errExited) {
		return
	}
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := id.AwaitEnd(ctx); err != nil {
		id.Kill()
		t.Errorf("a helper's child outlives it: %v", err)
	}
}

// TestAHelperSpeaksEnglish, whatever the user's locale.
func TestAHelperSpeaksEnglish(t *testing.T) {
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	for want, env := range map[string][]string{"C": nil, "C.UTF-8": {"LC_ALL=C.UTF-8"}} {
		if got, err := (Helper{Program: "sh", Args: []string{"-c", "echo $LC_ALL"}, Env: env}).Output(context.Background()); err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

// TestAHelperThatFloodsIsKeptInPart, so that it cannot take this process's memory.
func TestAHelperThatFloodsIsKeptInPart(t *testing.T) {
	answer, err := Helper{Program: "sh", Args: []string{"-c", "yes | head -c 70000000"}}.Run(context.Background())
	if err != nil || len(answer.Out) != maxOutput {
		t.Errorf("%d bytes, %v", len(answer.Out), err)
	}
}

// TestAProgramIsFoundWithoutAPath, in the standard directories, and not in this one.
func TestAProgramIsFoundWithoutAPath(t *testing.T) {
	t.Setenv("PATH", "/nonexistent")
	if path, err := LookProgram("sh"); err != nil || !filepath.IsAbs(path) {
		t.Errorf("%q, %v", path, err)
	}
	refused := script(t, "#!/bin/sh\n", 0o644)
	t.Setenv("PATH", filepath.Dir(refused))
	if _, err := LookProgram("tool"); !errors.Is(err, unix.EACCES) || !strings.Contains(err.Error(), refused) {
		t.Errorf("a file without the right to be executed: %v", err)
	}
	must(t, os.Chmod(refused, 0o755))
	before, err := os.Getwd()
	must(t, err)
	must(t, os.Chdir(filepath.Dir(refused)))
	defer func() { must(t, os.Chdir(before)) }()
	for _, path := range []string{".", ":/nonexistent"} {
		t.Setenv("PATH", path)
		if _, err := LookProgram("tool"); err == nil || errors.Is(err, unix.EACCES) {
			t.Errorf("a program in the current directory: %v", err)
		}
	}
}
