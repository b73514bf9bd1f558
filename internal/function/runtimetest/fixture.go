// SPDX-License-Identifier: Apache-2.0

// Package runtimetest is the suite that every runtime must pass, and the fixture
// for it and for the runtimes' own tests.
package runtimetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// Patience bounds what must happen soon. It is long because the machine may be
// busy; passing tests never wait for it. A runtime that boots something sets more
// before it runs the suite.
var Patience = testenv.Patient(30 * time.Second)

// Function is one function on its way up and down.
type Function struct {
	T       *testing.T
	Runtime runtime.Runtime
	Spec    runtime.Spec
	Sandbox *runtime.Sandbox

	mu   sync.Mutex
	made []step.Resource
}

// Append implements step.Journal.
func (f *Function) Append(r ...step.Resource) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made = append(f.made, r...)
	return nil
}

// New prepares a function that is not up yet, in its own chain. At the end of the
// test it is removed, and any leftover fails the test.
func New(t *testing.T, rt runtime.Runtime, fn chain.Function) *Function {
	t.Helper()
	id := make([]byte, 4)
	if _, err := rand.Read(id); err != nil {
		t.Fatal(err)
	}
	chainName := "dray-test-" + hex.EncodeToString(id)
	if fn.Name == "" {
		fn.Name = "du"
	}
	fn.Runtime = rt.Name()
	base := filepath.Join("/run", chainName)
	f := &Function{T: t, Runtime: rt, Spec: runtime.Spec{
		Chain:    chainName,
		Function: fn,
		CPUs:     fn.CPUs.Set,
		Dir:      filepath.Join(base, fn.Name),
		State:    base,
		Cgroup:   host.Cgroup{Path: "/" + chainName + "/" + fn.Name},
	}}
	for _, dir := range []string{base, f.Spec.Dir} {
		testenv.Must(t, os.Mkdir(dir, 0o711))
	}
	t.Cleanup(func() {
		f.Remove()
		f.NothingLeft()
		// A last resort, so that one failed test does not spoil the next.
		for _, r := range []step.Resource{host.CgroupResource(host.Cgroup{Path: "/" + chainName}), host.DirResource(base)} {
			if err := host.Removers()[r.Kind](context.Background(), r); err != nil {
				t.Errorf("remove %s: %v", r, err)
			}
		}
	})
	return f
}

// Up makes a function's sandbox.
func Up(t *testing.T, rt runtime.Runtime, fn chain.Function) *Function {
	t.Helper()
	f := New(t, rt, fn)
	testenv.Must(t, f.Up(nil))
	return f
}

// Up runs the sandbox's steps.
func (f *Function) Up(fault func(step.Step, step.Phase) error) error {
	build, err := f.Runtime.Sandbox(f.Spec)
	if err != nil {
		return err
	}
	f.Sandbox = build.Sandbox
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	return f.runner(fault).Run(ctx, build.Steps)
}

func (f *Function) runner(fault func(step.Step, step.Phase) error) *step.Runner {
	removers := host.Removers()
	for kind, remove := range f.Runtime.Removers() {
		removers[kind] = remove
	}
	return &step.Runner{Journal: f, Removers: removers, Fault: fault}
}

// Remove removes the function as a later `dray gc` would: from the journal alone,
// after a JSON round trip.
func (f *Function) Remove() {
	f.T.Helper()
	f.mu.Lock()
	text, err := json.Marshal(f.made)
	f.mu.Unlock()
	if err != nil {
		f.T.Fatal(err)
	}
	var made []step.Resource
	if err := json.Unmarshal(text, &made); err != nil {
		f.T.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := f.runner(nil).Remove(ctx, made); err != nil {
		f.T.Error(err)
	}
}

// NothingLeft fails the test if the function left a file, a mount, a cgroup or a
// process.
func (f *Function) NothingLeft() {
	f.T.Helper()
	entries, err := os.ReadDir(f.Spec.Dir)
	if err != nil {
		f.T.Error(err)
	}
	for _, e := range entries {
		f.T.Errorf("left in the function's directory: %s", e.Name())
	}
	points, err := host.MountsAt(f.Spec.Dir)
	if err != nil || len(points) > 0 {
		f.T.Errorf("left mounted: %v %v", points, err)
	}
	for _, c := range []host.Cgroup{f.Spec.Cgroup, f.Spec.EngineCgroup()} {
		if exists, err := c.Exists(); err != nil || exists {
			f.T.Errorf("left: cgroup %s (%v)", c.Path, err)
		}
	}
	if rt, ok := f.Runtime.(interface {
		Leftovers(runtime.Spec) ([]string, error)
	}); ok { // a test's wrapper that knows what the engine keeps
		if left, err := rt.Leftovers(f.Spec); err != nil || len(left) > 0 {
			f.T.Errorf("left in the engine: %v %v", left, err)
		}
	}
}

// Buffer collects output; it may be read while it is written.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Running is a started command with its output.
type Running struct {
	runtime.Instance
	Out, Err *Buffer
	t        *testing.T
}

// Start starts the command.
func (f *Function) Start(argv ...string) *Running {
	f.T.Helper()
	r, err := f.TryStart(argv...)
	if err != nil {
		f.T.Fatal(err)
	}
	return r
}

// TryStart starts the command, or returns why it cannot.
func (f *Function) TryStart(argv ...string) (*Running, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	f.Spec.Function.Command = argv
	r := &Running{Out: &Buffer{}, Err: &Buffer{}, t: f.T}
	var err error
	r.Instance, err = f.Runtime.Start(ctx, f.Spec, runtime.Output{Stdout: r.Out, Stderr: r.Err})
	return r, err
}

// Await waits until the command has printed text.
func (r *Running) Await(text string) {
	r.t.Helper()
	Eventually(r.t, "output "+text, func() bool { return bytes.Contains([]byte(r.Out.String()), []byte(text)) })
}

// Status waits for the command's end and returns its exit status.
func (r *Running) Status() int {
	r.t.Helper()
	type result struct {
		code int
		err  error
	}
	done := make(chan result, 1)
	go func() {
		code, err := r.Wait()
		done <- result{code, err}
	}()
	select {
	case got := <-done:
		if got.err != nil {
			r.t.Errorf("wait: %v", got.err)
		}
		return got.code
	case <-time.After(Patience):
		r.t.Fatalf("the command does not end; it printed %q, %q", r.Out, r.Err)
		return 0
	}
}

// Output runs a command to its end and returns what it printed and its status.
func (f *Function) Output(argv ...string) (string, int) {
	f.T.Helper()
	r := f.Start(argv...)
	code := r.Status()
	return r.Out.String() + r.Err.String(), code
}

// Exec runs a program next to the command.
func (f *Function) Exec(stdin string, argv ...string) (string, int) {
	f.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	var out Buffer
	code, err := f.Runtime.Exec(ctx, f.Spec, argv, runtime.Stdio{Stdin: bytes.NewBufferString(stdin), Stdout: &out, Stderr: &out})
	if err != nil {
		f.T.Fatalf("exec %q: %v; it printed %s", argv, err, out.String())
	}
	return out.String(), code
}

// Eventually waits until the condition holds.
func Eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("waited %v for %s, which did not happen", Patience, what)
}
