// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxOutput bounds the stored part of each output stream of a program, in bytes.
const maxOutput = 16 << 20

// program is one running process group.
type program struct {
	name     string
	cmd      *exec.Cmd
	at       Endpoint
	out      capture
	errOut   capture
	finished chan struct{} // closed once it has been reaped
	err      error         // of Wait; valid once finished
}

// launch starts argv at an endpoint, in its own process group. extra become file
// descriptors 3 and up.
func launch(at Endpoint, argv []string, extra ...*os.File) (*program, error) {
	p := prepare(at, argv, extra)
	if err := p.start(at); err != nil {
		return nil, err
	}
	return p, nil
}

// launchHeld also starts argv, with a standard input that ends with letGo.
func launchHeld(at Endpoint, argv []string) (p *program, letGo func() error, err error) {
	p = prepare(at, argv, nil)
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	if err := p.start(at); err != nil {
		return nil, nil, err
	}
	return p, in.Close, nil
}

func prepare(at Endpoint, argv []string, extra []*os.File) *program {
	p := &program{name: filepath.Base(argv[0]), at: at, finished: make(chan struct{})}
	p.cmd = exec.Command(argv[0], argv[1:]...)
	if at.Far != nil {
		p.cmd = at.Far.Command(argv)
	} else if at.machine() {
		cmd, err := inMachine(at, argv)
		if err != nil {
			p.cmd.Err = err // start fails with it
		} else {
			p.cmd = cmd
		}
	} else if at.dpdk() {
		// A switch of another user may need to connect to the device's socket. The
		// socket's directory controls access.
		p.cmd = exec.Command("/bin/sh", append([]string{"-c", `umask 0; exec "$@"`, "sh"}, argv...)...)
	}
	p.cmd.Env = append(append(os.Environ(), "LC_ALL=C"), at.env()...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errOut
	p.cmd.ExtraFiles = extra
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A grandchild outside the group that holds the pipes must not block Wait.
	p.cmd.WaitDelay = hangTimeout
	return p
}

func (p *program) start(at Endpoint) error {
	begin := at.Place.Start
	if at.Far != nil {
		begin = (*exec.Cmd).Start
	}
	if err := begin(p.cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	go func() {
		// WNOWAIT leaves the zombie: until it is reaped, the group's number is not reused.
		for errors.Is(unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
			continue
		}
		p.signal(unix.SIGKILL) // what it has started
		p.err = p.cmd.Wait()
		close(p.finished)
	}()
	return nil
}

// signal sends a signal to the whole group, unless it has been reaped.
func (p *program) signal(sig syscall.Signal) {
	select {
	case <-p.finished:
	default:
		_ = unix.Kill(-p.cmd.Process.Pid, sig) // it may have just gone
	}
}

// kill ends the whole group and reaps the program. There may be none.
func (p *program) kill() {
	if p == nil {
		return
	}
	p.signal(unix.SIGKILL)
	<-p.finished
}

// within reports whether the program ends by itself within d.
func (p *program) within(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.finished:
		return true
	case <-t.C:
		return false
	}
}

// words are the program's last output, for an error text.
func (p *program) words() string {
	if w := lastWords(p.errOut.bytes()); w != "" {
		return w
	}
	return lastWords(p.out.bytes())
}

// complaint is what the program said on standard error, to be added to an error text. Its
// standard output may be a whole result by then.
func (p *program) complaint() string {
	w := lastWords(p.errOut.bytes())
	if w == "" {
		return ""
	}
	return fmt.Sprintf(": %q", w)
}

// lastWords is the last non-empty line of text, shortened.
func lastWords(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(stripANSI(out))), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if len(last) > 200 {
		last = last[:200] + "…"
	}
	return strings.ToValidUTF8(last, "?")
}

// capture keeps the beginning of a stream, up to maxOutput.
type capture struct {
	mu  sync.Mutex
	buf bytes.Buffer
	cut bool
}

func (c *capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := maxOutput - c.buf.Len()
	if len(b) > room {
		c.cut = true
		c.buf.Write(b[:room])
		return len(b), nil
	}
	return c.buf.Write(b)
}

func (c *capture) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.buf.Bytes())
}

// truncated reports whether output was discarded.
func (c *capture) truncated() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}
