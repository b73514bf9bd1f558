// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/host"
)

// bootTimeout is how long a guest may take until its agent answers. Emulated on an
// idle machine it takes 3 to 6 seconds; next to polling switches of other links it
// took up to a minute.
const bootTimeout = 5 * time.Minute

// Info describes a running guest.
type Info struct {
	Process host.ProcessID `json:"process"` // QEMU's
	Accel   Accel          `json:"accel"`
	Kernel  string         `json:"kernel"` // version
	Boot    time.Duration  `json:"boot"`   // from QEMU's start to the agent's answer, ns
	CPUs    int            `json:"cpus"`
}

// Machine is a guest that this process has booted.
type Machine struct {
	Info
	Dir   string
	ended chan struct{}   // closed once QEMU has been reaped
	how   error           // how it ended; set before that
	kept  <-chan struct{} // closed once all its output is logged
}

// Boot boots a guest and returns when its agent answers. On error nothing of it
// keeps running; the error and the guest's directory have its console output.
func Boot(ctx context.Context, c Config) (*Machine, error) {
	kernel, err := FindKernel(ctx, c.Kernel)
	if err != nil {
		return nil, err
	}
	accel, err := Accelerator(ctx, kernel)
	if err != nil {
		return nil, err
	}
	return c.boot(ctx, kernel, accel, bootTimeout)
}

func (c Config) boot(ctx context.Context, kernel Kernel, accel Accel, patience time.Duration) (*Machine, error) {
	agent, err := FindAgent()
	if err != nil {
		return nil, err
	}
	if err := c.writeInitramfs(filepath.Join(c.Dir, fileInitramfs), kernel, agent); err != nil {
		return nil, err
	}
	begin := time.Now()
	m, err := c.start(kernel, accel)
	if err != nil {
		return nil, err
	}
	m.Accel, m.Kernel, m.CPUs = accel, kernel.Version, c.vcpus()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = m.await(ctx)
	if err == nil {
		m.Boot = time.Since(begin)
		if err = c.pin(ctx); err == nil {
			err = m.writeInfo()
		}
	}
	// The kernel has read it; it would only use memory.
	err = errors.Join(err, os.Remove(filepath.Join(c.Dir, fileInitramfs)))
	if err != nil {
		m.Kill()
		return nil, fmt.Errorf("boot guest %s (%s, %s): %w%s", c.Name, kernel.Version, accel, err, m.lastWords())
	}
	return m, nil
}

// start starts QEMU.
func (c Config) start(kernel Kernel, accel Accel) (*Machine, error) {
	path, err := host.NeedProgram("guests", Emulator, "qemu-system-x86")
	if err != nil {
		return nil, err
	}
	h, err := c.open()
	if err != nil {
		return nil, err
	}
	defer h.close()
	m := &Machine{Dir: c.Dir, ended: make(chan struct{})}
	var outputs []*os.File
	if outputs, m.kept, err = c.startLogs(); err != nil {
		return nil, err
	}
	h.console = h.add(outputs[0])
	defer outputs[1].Close()
	cmd := exec.Command(path, c.args(kernel, accel, h)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = "/", outputs[1], outputs[1], h.files
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin", "LC_ALL=C"}
	// A terminal's Ctrl-C is for dray.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.startQEMU(m, cmd, kernel); err != nil {
		return nil, err
	}
	if m.Process, err = host.Identify(cmd.Process.Pid); err != nil {
		m.Process = host.ProcessID{PID: cmd.Process.Pid} // it has ended already
	}
	return m, nil
}

func (c Config) startQEMU(m *Machine, cmd *exec.Cmd, kernel Kernel) error {
	if !c.Detached {
		if c.Place.Netns != host.HostNetns || c.Place.Cgroup.Path != "" || c.User != 0 {
			return errors.New("a guest that ends with this process cannot have its own place or user")
		}
		return m.startTied(cmd)
	}
	start := c.Place.Start
	if c.User != 0 {
		confinement, err := c.confinement(kernel)
		if err != nil {
			return err
		}
		start = func(cmd *exec.Cmd) error { return c.Place.StartConfined(cmd, confinement) }
	}
	if err := start(cmd); err != nil {
		return err
	}
	go m.reap(cmd)
	return nil
}

// startTied starts QEMU so that it is killed when this process ends. The kernel
// ties that to the starting thread, so the thread waits for QEMU.
func (m *Machine) startTied(cmd *exec.Cmd) error {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			m.reap(cmd)
		}
	}()
	return <-started
}

func (m *Machine) reap(cmd *exec.Cmd) {
	m.how = cmd.Wait()
	close(m.ended)
}

// errEnded means that a guest ended before it was ready.
var errEnded = errors.New("QEMU ended")

// await waits for the agent's first answer.
func (m *Machine) await(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-m.ended:
			cancel(errEnded)
		case <-ctx.Done():
		}
	}()
	for {
		c, err := Dial(ctx, m.Dir)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); errors.Is(cause, errEnded) {
				return fmt.Errorf("%w: %v", cause, m.how)
			}
			return fmt.Errorf("its agent does not answer: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond): // QEMU makes its sockets first
		}
	}
}

// Kill ends the guest at once, and returns when QEMU is reaped and its logs are
// complete.
func (m *Machine) Kill() {
	m.Process.Signal(syscall.SIGKILL)
	<-m.ended
	<-m.kept
}

// lastWords is the end of the console and QEMU output, for an error.
func (m *Machine) lastWords() string {
	var words string
	for _, file := range logged {
		if lines := lastLines(filepath.Join(m.Dir, file)); lines != "" {
			words += fmt.Sprintf("; %s: %q", file, lines)
		}
	}
	return words
}

func (m *Machine) writeInfo() error {
	text, err := json.Marshal(m.Info)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(m.Dir, fileInfo), text, 0o600)
}

// ReadInfo describes the guest in a directory; Info.Process shows whether it
// still runs. os.ErrNotExist: none has been booted there.
func ReadInfo(dir string) (Info, error) {
	var i Info
	text, err := os.ReadFile(filepath.Join(dir, fileInfo))
	if err != nil {
		return i, err
	}
	return i, json.Unmarshal(text, &i)
}

// Emulated reports whether the CPUs of the guest in dir are emulated; "" is no guest.
// An unknown accelerator counts as emulated.
func Emulated(dir string) bool {
	if dir == "" {
		return false
	}
	info, err := ReadInfo(dir)
	return err != nil || info.Accel != KVM
}

// Clear removes the files of an ended guest from its directory.
func Clear(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
