// SPDX-License-Identifier: Apache-2.0

// Package runtime defines the interface of runtimes. Each runtime has its own
// package and passes the suite in runtimetest.
//
// A function comes up in three phases: its sandbox (namespaces, cgroup) is made,
// its ports are plumbed into the sandbox, and only then its command starts. The
// sandbox outlives a restart of the command.
package runtime

import (
	"context"
	"io"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Runtime is one way to run functions.
type Runtime interface {
	// Name is its name in a chain file.
	Name() chain.RuntimeName
	// Probe reports whether this host can run it. It leaves nothing behind.
	Probe(ctx context.Context) inventory.Item
	// Sandbox returns the steps that make the function's namespaces and cgroup, and
	// executes none of them.
	Sandbox(spec Spec) (*SandboxBuild, error)
	// Start runs the function's command in its sandbox and returns once it has
	// started. It may be called again after the instance ended. ctx bounds only the
	// start. ErrNothingToStart: the function has no command or is external; a
	// *CommandError: its command cannot run.
	Start(ctx context.Context, spec Spec, out Output) (Instance, error)
	// Exec runs another program like the function's command (namespaces, limits,
	// privileges) and returns its exit status, 128+n for signal n. It needs the
	// sandbox, not a running command. If ctx ends the program is killed.
	Exec(ctx context.Context, spec Spec, argv []string, stdio Stdio) (int, error)
	// Removers removes the resource kinds that only this runtime makes.
	Removers() step.Removers
}

// Booter is implemented by a runtime that must start something before an
// instrument can run in a function.
type Booter interface {
	// Boot is called when the function's ports have been plumbed. What it starts
	// belongs to the sandbox, and ends with it.
	Boot(ctx context.Context, spec Spec) error
}

// Checker is implemented by a runtime whose functions can vanish without notice.
type Checker interface {
	// Check returns nil while the function is in the namespace of its ports, and a *GoneError
	// once it is not. After any other error it is not known.
	Check(ctx context.Context, spec Spec) error
}

// Finder is implemented by a runtime whose engine keeps what it has made of a function, even if
// it is not known here.
type Finder interface {
	// Find returns what the engine has of the functions of a chain, by its control group.
	Find(ctx context.Context, chain host.Cgroup) ([]step.Resource, error)
}

// ImageKeeper is implemented by a runtime whose engine stores its functions'
// images.
type ImageKeeper interface {
	// HasImage reports whether the engine has the referenced image.
	HasImage(ctx context.Context, image string) (bool, error)
	// ImageSize is the size of an image that the engine has, in bytes.
	ImageSize(ctx context.Context, image string) (int64, error)
}

// Spec is one function to run.
type Spec struct {
	Chain    string
	Function chain.Function
	CPUs     []int // as planned; nil: any
	// Vdevs are how the function's DPDK application attaches to its dpdk ports, in
	// chain file order. They are known from phase 3 on.
	Vdevs []dpdk.Vdev
	// Dir is the function's own existing directory, mode 0711, inside State, the
	// directory of all Drayage state.
	Dir, State string
	// Cgroup is the function's own. Sandbox creates it with the function's limits;
	// the command runs in its child "run", instruments in "tools".
	Cgroup host.Cgroup
}

// SandboxBuild is the work of making a sandbox.
type SandboxBuild struct {
	Steps []step.Step
	// Sandbox is filled in by the steps as they run.
	Sandbox *Sandbox
}

// Sandbox is where a function's ports are plumbed and where instruments run.
type Sandbox struct {
	Netns host.Netns `json:"netns"`
	// Tools is the cgroup that instruments join, under the function's limits.
	Tools host.Cgroup `json:"tools"`
	// Ports is the host directory that holds only the sockets of the function's
	// native ports, each named as its port. The function sees it at PortsInside or at
	// its DRAY_PORTS. Empty: it has no native port.
	Ports string `json:"ports,omitempty"`
	// PortsUser is the host uid, in addition to root, that may connect to them.
	PortsUser int `json:"ports_user,omitempty"`
	// Links is the host directory that holds one directory for each dpdk port, named
	// as the port and owned by PortsUser. Empty: it has none.
	Links string `json:"links,omitempty"`
	// Guest is the directory of the function's virtual machine (package guest):
	// instruments then run inside it. Empty: it is no machine.
	Guest string `json:"guest,omitempty"`
	// RuntimeDir is EAL's directory for a program that runs on the host's file system
	// in the function's place (dpdk.RuntimeVariable).
	RuntimeDir string `json:"runtime_dir,omitempty"`
}

// Place is where an instrument of this function runs.
func (s Sandbox) Place() host.Place { return host.Place{Netns: s.Netns, Cgroup: s.Tools} }

// Output is where the command's standard output and error go.
type Output struct {
	Stdout, Stderr io.Writer
}

// Stdio is the standard streams of Exec.
type Stdio struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Terminal is the terminal that Stdin reads and Stdout writes; nil: they are no
	// terminal. It is nil if the runtime is no TerminalGiver.
	Terminal *Terminal
}

// Instance is one running command of a function.
type Instance interface {
	// ID identifies its first process.
	ID() host.ProcessID
	// Done is closed when it has ended.
	Done() <-chan struct{}
	// Wait blocks until it has ended and returns its exit status; 128+n for
	// signal n.
	Wait() (int, error)
	// Stop asks it to end (SIGTERM), and kills it when ctx ends.
	Stop(ctx context.Context) error
}

// Base is the constant part of a runtime whose resources package host removes.
type Base chain.RuntimeName

// Name implements Runtime.
func (b Base) Name() chain.RuntimeName { return chain.RuntimeName(b) }

// Removers implements Runtime.
func (Base) Removers() step.Removers { return nil }
