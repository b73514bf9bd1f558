// SPDX-License-Identifier: Apache-2.0

// Package step runs set-up as a list of small steps. Each step declares what it may
// leave behind before it acts. The declaration is journaled: the same removal code
// serves a failed step, a `dray down`, and the clean-up after a SIGKILL or a power
// cut.
package step

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
)

// Kind is a Resource's type, and so selects its Remover.
type Kind string

// Resource names one thing that a step leaves behind, so that another process can
// later remove exactly that thing. Kind determines which fields are set; the
// constructors in package host set them.
type Resource struct {
	Kind  Kind   `json:"kind"`
	Path  string `json:"path,omitempty"`  // file, directory, mount point, namespace file, cgroup
	Netns string `json:"netns,omitempty"` // namespace file that a link lives in; empty: the host's
	Name  string `json:"name,omitempty"`  // link or container name
	MAC   string `json:"mac,omitempty"`   // a link is removed only if its address is still this one
	Host  string `json:"host,omitempty"`  // engine socket that a container belongs to
}

func (r Resource) String() string {
	s := string(r.Kind)
	if r.Name != "" {
		s += " " + r.Name
	}
	if r.Path != "" {
		s += " " + r.Path
	}
	if r.Netns != "" {
		s += " in " + r.Netns
	}
	return s
}

// Step is one change to the host.
type Step struct {
	Name  string     // unique in its list: "veth f1u: create pair"
	Makes []Resource // everything that Do may leave behind
	Do    func(ctx context.Context) error
}

// Journal makes a Resource durable before it exists.
type Journal interface {
	Append(r ...Resource) error
}

// Remover removes one Resource. It returns nil if the resource is already gone, and
// never touches a thing that merely has the same name.
type Remover func(ctx context.Context, r Resource) error

// Removers maps each Kind to its Remover.
type Removers map[Kind]Remover

// Phase is a point around a step at which tests can inject a fault.
type Phase string

const (
	Before Phase = "before" // journaled, not yet done
	After  Phase = "after"  // done, but reported as failed
)

// Runner executes steps and undoes them.
type Runner struct {
	Journal  Journal
	Removers Removers
	Progress func(Step)              // called before each step; may be nil
	Fault    func(Step, Phase) error // injects failures in tests; nil in production
	Failed   func()                  // called before a Run that failed, and was not interrupted, removes what it made; may be nil
}

// Run executes the steps in order. If one fails, Run removes everything that it
// made, in reverse order, and the error names the failing step.
func (r *Runner) Run(ctx context.Context, steps []Step) error {
	var made []Resource
	for _, s := range steps {
		err := ctx.Err()
		if err == nil {
			made = append(made, s.Makes...)
			err = r.runOne(ctx, s)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", s.Name, err)
			if r.Failed != nil && ctx.Err() == nil {
				r.Failed()
			}
			// Removal must go on after a cancelled context.
			return errors.Join(err, r.Remove(context.WithoutCancel(ctx), made))
		}
	}
	return nil
}

func (r *Runner) runOne(ctx context.Context, s Step) error {
	slog.DebugContext(ctx, "step", "name", s.Name)
	if r.Progress != nil {
		r.Progress(s)
	}
	if err := r.Journal.Append(s.Makes...); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if err := r.inject(s, Before); err != nil {
		return err
	}
	if err := s.Do(ctx); err != nil {
		return err
	}
	return r.inject(s, After)
}

func (r *Runner) inject(s Step, p Phase) error {
	if r.Fault == nil {
		return nil
	}
	return r.Fault(s, p)
}

// Remove removes resources in reverse order of creation. It tries each one, and
// returns all errors joined.
func (r *Runner) Remove(ctx context.Context, made []Resource) error {
	var errs []error
	for _, res := range slices.Backward(made) {
		remove, ok := r.Removers[res.Kind]
		if !ok {
			errs = append(errs, fmt.Errorf("remove %s: no remover for this kind", res))
			continue
		}
		slog.DebugContext(ctx, "remove", "resource", res)
		if err := remove(ctx, res); err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", res, err))
		}
	}
	return errors.Join(errs...)
}
