// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// TestExecInATerminal types at a terminal in which dray exec runs a shell:
//
//	terminal ── dray exec ── terminal of the container ── sh  a
//
// The caller's terminal is restored when the shell ends, and when dray is killed.
func TestExecInATerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.want(0, "up", b.file(pair{Name: "tty", Runtime: "runc"}.yaml()))
	defer b.want(0, "down", "tty")
	pty, screen := terminal(t)
	before := modes(t, pty.Slave)

	for _, ends := range []string{"exit 5", "SIGTERM"} {
		screen.clear(t, pty)
		cmd := b.command(context.Background(), "exec", "tty", "a", "sh")
		cmd.Env = append(cmd.Env, "TERM=vt100")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = pty.Slave, pty.Slave, pty.Slave
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		screen.await(t, "# ")
		if now := modes(t, pty.Slave); now.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) != 0 {
			t.Errorf("keys are not forwarded one by one: mode %#x", now.Lflag)
		}
		enter(t, pty.Master, `perl -e 'ioctl(STDIN, 0x5413, $b = "\0" x 8); print join("x", "size", unpack("S2", $b)), "\n"'`)
		screen.await(t, "sizex30x90")
		if err := pty.Resize(91, 31); err != nil {
			t.Fatal(err)
		}
		// It takes a moment to arrive.
		enter(t, pty.Master, `perl -e 'for (1..1000) { ioctl(STDIN, 0x5413, $b = "\0" x 8); last if (unpack("S2", $b))[0] == 31; select(undef, undef, undef, 0.02) } print join("x", "size", unpack("S2", $b)), "\n"'`)
		screen.await(t, "sizex31x91")
		if err := pty.Resize(90, 30); err != nil {
			t.Fatal(err)
		}
		if ends == "SIGTERM" {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		} else {
			enter(t, pty.Master, ends)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); ends == "exit 5" && code != 5 || code == 0 {
			t.Errorf("%s: status %d", ends, code)
		}
		if after := modes(t, pty.Slave); *after != *before {
			t.Errorf("%s: the terminal has mode %+v, not %+v as before", ends, *after, *before)
		}
	}
}

// TestKeysEndTop presses the keys that end dray top, which restores the terminal.
func TestKeysEndTop(t *testing.T) {
	b := newBench(t)
	pty, screen := terminal(t)
	before := modes(t, pty.Slave)
	for _, key := range []string{"q", "\x03"} {
		screen.clear(t, pty)
		cmd := b.command(context.Background(), "top")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = pty.Slave, pty.Slave, pty.Slave
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		screen.await(t, "no link has native ports")
		if _, err := pty.Master.WriteString(key); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%q: %v", key, err)
			}
		case <-time.After(patience):
			t.Errorf("%q does not end it", key)
			_ = cmd.Process.Kill()
			<-ended
		}
		if after := modes(t, pty.Slave); *after != *before {
			t.Errorf("%q: the terminal has mode %+v, not %+v as before", key, *after, *before)
		}
	}
}

// TestExecWithoutATerminal runs a program from a terminal that it cannot use: in the
// background, where SIGTTOU would stop dray, and with standard error elsewhere.
func TestExecWithoutATerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.want(0, "up", b.file(pair{Name: "notty", Runtime: "process"}.yaml()))
	defer b.want(0, "down", "notty")
	pty, screen := terminal(t)

	file := filepath.Join(t.TempDir(), "errors")
	for script, want := range map[string]string{
		`timeout --kill-after 1 60 "$@"`: "", // it makes its own process group
		`"$@" 2>"$0"`:                    "this to standard error\n",
	} {
		screen.clear(t, pty)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		dray := b.command(context.Background(), "exec", "notty", "a", "sh", "-c", "echo this to standard error >&2; echo written")
		cmd := exec.Command("sh", append([]string{"-c", script, file}, dray.Args...)...)
		cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = dray.Env, pty.Slave, pty.Slave, pty.Slave
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v: %s", script, err, screen)
		}
		screen.await(t, "written")
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s: the standard error file holds %q, %v", script, got, err)
		}
	}
}

// terminal is a caller's terminal, and its screen.
func terminal(t *testing.T) (*host.Pty, *screen) {
	t.Helper()
	pty, err := host.OpenPty(90, 30)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pty.Master.Close()
		pty.Slave.Close()
	})
	screen := &screen{}
	go screen.show(pty.Master)
	return pty, screen
}

func modes(t *testing.T, f *os.File) *unix.Termios {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// screen is the content of a terminal.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) show(from *os.File) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		_, _ = s.Write(buf[:n])
		if err != nil {
			return
		}
	}
}

// Write implements io.Writer.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

// clear forgets all that was written so far, shown or not.
func (s *screen) clear(t *testing.T, pty *host.Pty) {
	t.Helper()
	const last = "everything before is old"
	if _, err := pty.Slave.WriteString(last); err != nil {
		t.Fatal(err)
	}
	s.await(t, last)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Reset()
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) await(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(s.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the terminal does not show %q: %q", text, s)
		}
	}
}

// enter types a line, as a keyboard does.
func enter(t *testing.T, keys *os.File, line string) {
	t.Helper()
	if _, err := keys.WriteString(line + "\r"); err != nil {
		t.Fatal(err)
	}
}
