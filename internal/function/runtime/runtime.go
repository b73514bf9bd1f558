// SPDX-License-Identifier: Apache-2.0

// Package runtime defines what a way to run functions must do. Each runtime
// lives in a folder of its own and passes the suite in runtimetest.
//
// A function comes up in three phases: its sandbox (namespaces, cgroup) is
// made, its ports are plumbed into the sandbox, and only then is its command
// started. The sandbox outlives a restart of the command.
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
	// Name is what a chain file calls it.
	Name() chain.RuntimeName
	// Probe reports whether this host can run it. It leaves nothing behind.
	Probe(ctx context.Context) inventory.Item
	// Sandbox returns the steps that make the function's namespaces and
	// cgroup. Nothing has happened yet when it returns.
	Sandbox(spec Spec) (*SandboxBuild, error)
	// Start runs the function's command in its sandbox and returns once it
	// has been started. It may be called again after the instance ended. ctx
	// bounds the starting only. ErrNothingToStart: the function has no command
	// or somebody else runs it; a *CommandError: its command cannot be run.
	Start(ctx context.Context, spec Spec, out Output) (Instance, error)
	// Exec runs another program as the function's command runs (namespaces,
	// limits, privileges) and returns its exit status, 128+n for signal n. It
	// needs the sandbox, not a running command. When ctx ends the program is killed.
	Exec(ctx context.Context, spec Spec, argv []string, stdio Stdio) (int, error)
	// Removers removes the kinds of resource that only this runtime makes.
	Removers() step.Removers
}

// Booter is implemented by a runtime whose functions need something running
// before an instrument can run in them.
type Booter interface {
	// Boot is called when the function's ports have been plumbed. What it starts
	// belongs to the sandbox, and ends with its removal.
	Boot(ctx context.Context, spec Spec) error
}

// Checker is implemented by a runtime whose functions can vanish without
// Drayage being told.
type Checker interface {
	// Check returns nil while the function is where its ports were plumbed.
	Check(ctx context.Context, spec Spec) error
}

// ImageKeeper is implemented by a runtime whose functions run from images that its
// engine keeps.
type ImageKeeper interface {
	// HasImage reports whether the engine has the image of that reference.
	HasImage(ctx context.Context, image string) (bool, error)
}

// Spec is one function as it is to be run.
type Spec struct {
	Chain    string
	Function chain.Function
	CPUs     []int // as planned; nil: any
	// Vdevs says how the function's DPDK application attaches to its dpdk ports,
	// in their order in the chain file. They are known from phase 3 on.
	Vdevs []dpdk.Vdev
	// Dir is an existing directory of the function's own, mode 0711, and State the
	// directory of all that Drayage keeps, in which it is.
	Dir, State string
	// Cgroup is the function's own. Sandbox creates it with the function's
	// limits; the command runs in its child "run", instruments in "tools".
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
	// Tools is the cgroup that instruments join: it is under the function's limits.
	Tools host.Cgroup `json:"tools"`
	// Ports is the directory on the host that holds the sockets of the function's
	// native ports, one named as each port, and nothing else; the function sees
	// it at PortsInside or at its DRAY_PORTS. Empty: it has no native port.
	Ports string `json:"ports,omitempty"`
	// PortsUser is the host's uid that may connect to these sockets, beside root.
	PortsUser int `json:"ports_user,omitempty"`
	// Links is the directory on the host that holds one directory for each dpdk
	// port, named as the port, which belongs to PortsUser. Empty: it has none.
	Links string `json:"links,omitempty"`
	// Guest is the directory of the function's virtual machine (package guest):
	// instruments then run inside it. Empty: the function is no machine.
	Guest string `json:"guest,omitempty"`
	// RuntimeDir is where EAL of a program that runs on the host's file system in
	// the function's place is to keep its files (dpdk.RuntimeVariable).
	RuntimeDir string `json:"runtime_dir,omitempty"`
}

// Place is where an instrument of this function runs.
func (s Sandbox) Place() host.Place { return host.Place{Netns: s.Netns, Cgroup: s.Tools} }

// Output is where the command's standard output and error go.
type Output struct {
	Stdout, Stderr io.Writer
}

// Stdio is what Exec connects.
type Stdio struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Terminal is that from which Stdin reads and to which Stdout writes; nil: they
	// are not a terminal. Of a runtime that is no TerminalGiver it is nil.
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
