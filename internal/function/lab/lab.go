// SPDX-License-Identifier: Apache-2.0

// Package lab runs a command on a kernel and machine with the features it needs.
// That is this host if it has them, and otherwise a virtual machine with Debian's
// kernel and the same programs. The records say so.
package lab

import (
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
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/function/guest/wire"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Openvswitch is the kernel feature of Open vSwitch's datapath, and NUMA the feature
// of a machine with memory on two NUMA nodes. The other features are qdiscs, by their
// tc names.
const (
	Openvswitch = "openvswitch"
	NUMA        = "numa"
)

// nodes is how many NUMA nodes a guest with that feature has.
const nodes = 2

// Features are all features that Needs may list.
func Features() []string { return append([]string{Openvswitch, NUMA}, host.QdiscKinds()...) }

// Needs lists a command's requirements.
type Needs struct {
	Features []string // of Features
	// Kernel is the flavour of Debian's kernel; empty: any, and in a guest the generic one.
	Kernel guest.Flavour
	Guest  bool   // always a lab guest
	Memory uint64 // memory of such a guest, bytes; 0: 2 GiB
}

const defaultMemory = 2 << 30

func (n Needs) memory() uint64 {
	if n.Memory == 0 {
		return defaultMemory
	}
	return n.Memory
}

// Missing lists what this host lacks; empty: the command can run natively.
func (n Needs) Missing() ([]string, error) {
	var missing []string
	for _, feature := range n.Features {
		if !slices.Contains(Features(), feature) {
			return nil, fmt.Errorf("the lab does not know the feature %q: use %s", feature, strings.Join(Features(), ", "))
		}
		has, err := hasFeature(feature)
		if err != nil {
			return nil, err
		}
		if !has {
			missing = append(missing, feature)
		}
	}
	if n.Kernel == "" {
		return missing, nil
	}
	h, err := host.Describe()
	if err != nil {
		return nil, err
	}
	if !Runs(h, n.Kernel) {
		missing = append(missing, map[guest.Flavour]string{guest.Realtime: "PREEMPT_RT", guest.LowLatency: guest.FullPreemption, guest.Generic: "Debian's default preemption"}[n.Kernel])
	}
	return missing, nil
}

// debianGeneric is the version suffix of Debian's generic kernels.
const debianGeneric = "-amd64"

// Runs reports whether a host's kernel is of that flavour. Any PREEMPT_RT kernel will do
// for Realtime.
func Runs(h inventory.Host, f guest.Flavour) bool {
	generic := strings.HasSuffix(h.Kernel, debianGeneric) && !h.Realtime
	full := slices.Contains(strings.Fields(h.CmdLine), guest.FullPreemption)
	switch f {
	case guest.Realtime:
		return h.Realtime
	case guest.LowLatency:
		return generic && full
	}
	return generic && !full
}

func hasFeature(feature string) (bool, error) {
	switch feature {
	case Openvswitch:
		return host.HasNetlinkFamily("ovs_datapath"), nil
	case NUMA:
		return len(host.AllMemoryNodes()) >= nodes, nil
	}
	err := host.ProbeQdisc(feature)
	if errors.Is(err, host.ErrUnsupported) {
		return false, nil
	}
	return err == nil, err
}

// Programs returns an error if this host lacks a program that a lab guest needs.
func Programs() error {
	for program, pkg := range map[string]string{guest.Emulator: "qemu-system-x86", "dpkg-deb": "dpkg", "depmod": "kmod"} {
		if _, err := host.NeedProgram("lab", program, pkg); err != nil {
			return err
		}
	}
	_, err := guest.FindAgent()
	return err
}

// Ready reports how a lab guest with that kernel would run; the error says why none
// can. The first time on a host it fetches the kernel's
// package; once after each host boot it tries KVM.
func Ready(ctx context.Context, kernel guest.Flavour) (guest.Accel, error) {
	if os.Geteuid() != 0 {
		return "", &host.Unsupported{What: "lab", Why: "not root", Fix: "run dray as root"}
	}
	if err := Programs(); err != nil {
		return "", err
	}
	k, err := guest.FindKernel(ctx, kernel)
	if err != nil {
		return "", err
	}
	return guest.Accelerator(ctx, k)
}

// Command describes a command to run.
type Command struct {
	Argv []string
	// OutDir is a directory in which the command may leave files; all its other
	// writes in a guest are lost. Empty: none.
	OutDir         string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Progress is called with the current activity; it may be nil.
	Progress func(string)
}

// Result is how and where the command ran.
type Result struct {
	Exit   int // its exit status, 128+n for signal n
	Native bool
	// The rest applies to a guest.
	Missing []string // why a guest was needed
	Accel   guest.Accel
	Kernel  string
	Boot    time.Duration
}

// Run runs a command if its needs are met. The error is a *host.Unsupported if no
// guest is available.
func Run(ctx context.Context, needs Needs, c Command) (Result, error) {
	missing, err := needs.Missing()
	if err != nil {
		return Result{}, err
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	if len(missing) == 0 && !needs.Guest {
		code, err := c.runHere(ctx)
		return Result{Exit: code, Native: true}, err
	}
	return c.runInGuest(ctx, needs, missing)
}

// grace is how long a command may take to end after SIGTERM.
const grace = 20 * time.Second

func (c Command) runHere(ctx context.Context) (int, error) {
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	// On SIGTERM dray removes everything it has made.
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = grace
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), ctx.Err()
		}
		return exit.ExitCode(), ctx.Err()
	}
	return 0, err
}

func (c Command) runInGuest(ctx context.Context, needs Needs, missing []string) (Result, error) {
	r := Result{Missing: missing}
	dir, remove, err := makeDir()
	if err != nil {
		return r, err
	}
	defer remove()
	config := guest.Config{
		Name: "dray-lab", Dir: dir, Kernel: needs.Kernel, Memory: needs.memory(), CmdLine: []string{inventory.LabParameter},
	}
	if slices.Contains(needs.Features, NUMA) {
		config.Nodes = nodes
	}
	if c.OutDir != "" {
		out, err := filepath.Abs(c.OutDir)
		if err != nil {
			return r, err
		}
		if err := os.MkdirAll(out, 0o755); err != nil {
			return r, err
		}
		// The agent mounts it before switching root: links would resolve wrongly.
		if out, err = filepath.EvalSymlinks(out); err != nil {
			return r, err
		}
		config.Shares = []guest.Share{{Path: out}}
	}
	c.Progress("booting a lab guest: " + reason(missing))
	m, err := guest.Boot(ctx, config)
	if err != nil {
		return r, err
	}
	defer m.Kill()
	r.Accel, r.Kernel, r.Boot = m.Accel, m.Kernel, m.Boot
	c.Progress(fmt.Sprintf("the lab guest runs %s with %s; it booted in %v", m.Kernel, m.Accel, m.Boot.Round(10*time.Millisecond)))
	if err := loadFeatures(ctx, m, needs.Features); err != nil {
		return r, err
	}
	r.Exit, err = c.run(ctx, m)
	return r, err
}

func reason(missing []string) string {
	if len(missing) == 0 {
		return "it was requested"
	}
	return "this host has no " + strings.Join(missing, ", ")
}

// loadFeatures loads the features' modules: a probe may report a module as
// missing if the kernel loads it only on demand.
func loadFeatures(ctx context.Context, m *guest.Machine, features []string) error {
	modules := []string{"tun"} // whose device nothing else makes
	for _, feature := range features {
		switch feature {
		case Openvswitch:
			modules = append(modules, feature)
		case "pfifo", "bfifo", NUMA: // part of every kernel
		default:
			modules = append(modules, "sch_"+feature)
		}
	}
	for _, module := range modules {
		var errs strings.Builder
		code, err := guest.Run(ctx, m.Dir, guest.Command{
			Request: wire.Request{Argv: []string{"modprobe", module}, Env: environ()}, Stderr: &errs,
		})
		if err != nil {
			return err
		}
		if code != 0 {
			return &host.Unsupported{What: "lab guest with " + module, Why: fmt.Sprintf("modprobe %s in %s: %s", module, m.Kernel, strings.TrimSpace(errs.String()))}
		}
	}
	return nil
}

// environ is this process's environment, as far as it applies in a guest.
func environ() []string {
	list := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	for _, name := range []string{"TERM", "LANG", "LC_ALL", "DRAY_LIB", "DRAY_GUEST", "DRAY_VPP"} {
		if value, ok := os.LookupEnv(name); ok {
			list = append(list, name+"="+value)
		}
	}
	return list
}

// run runs the command in the guest. When ctx ends the command is first asked to
// end, as a terminal does.
func (c Command) run(ctx context.Context, m *guest.Machine) (int, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	path, err := exec.LookPath(c.Argv[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return 0, err
	}
	signals := make(chan unix.Signal, 1)
	defer context.AfterFunc(ctx, func() { signals <- unix.SIGTERM })()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })()
	code, err := guest.Run(running, m.Dir, guest.Command{
		Request: wire.Request{Argv: append([]string{path}, c.Argv[1:]...), Env: environ(), Dir: cwd},
		Stdin:   c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, Signals: signals,
	})
	return code, errors.Join(err, ctx.Err())
}
