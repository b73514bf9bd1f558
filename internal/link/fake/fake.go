// SPDX-License-Identifier: Apache-2.0

// Package fake is a transport that exists only in memory. It tests the planner
// and failing steps, and carries no packets.
package fake

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Kind is the kind of every resource that a fake link creates.
const Kind step.Kind = "fake"

// Driver is a fake transport. Set its exported fields before use.
type Driver struct {
	DriverName string
	Abilities  inventory.Caps
	Item       inventory.Item // result of Probe; the zero Item is "ok"
	// Fail makes the step of that name return that error.
	Fail map[string]error

	mu   sync.Mutex
	live map[string]bool
}

// New returns a driver that joins any number of ports and passes its probe.
func New(name string) *Driver {
	return &Driver{
		DriverName: name,
		Abilities: inventory.Caps{
			Faces: []string{"netdev"}, Isolation: "no-shared-memory", MinEnds: 1, Uplink: true,
			Shapes: true, MaxMTU: 65535, Rank: 1, Privileges: "none", KernelPath: "none: a fake",
		},
	}
}

func (d *Driver) Name() string { return d.DriverName }

func (d *Driver) Caps() inventory.Caps { return d.Abilities }

func (d *Driver) Probe(context.Context) inventory.Item {
	item := d.Item
	item.Name = d.DriverName
	if item.Status == "" {
		item.Status = inventory.OK
	}
	return item
}

// Build returns a step for the link and one for each end.
func (d *Driver) Build(s transport.Spec) (*transport.Build, error) {
	if err := transport.Check(d.DriverName, d.Abilities, s); err != nil {
		return nil, err
	}
	build := transport.NewBuild(d.step(s, "create link", s.Chain+"/"+s.Link))
	for i, e := range s.Ends {
		what := fmt.Sprintf("create end %d %s", i+1, e.Name)
		build.Steps = append(build.Steps, d.step(s, what, fmt.Sprintf("%s/%s/%d", s.Chain, s.Link, i+1)))
	}
	build.Report.Engine = "fake"
	return build, nil
}

func (d *Driver) step(s transport.Spec, what, resource string) step.Step {
	name := s.StepName(d.DriverName, what)
	return step.Step{
		Name:  name,
		Makes: []step.Resource{{Kind: Kind, Name: resource, Host: d.DriverName}},
		Do: func(context.Context) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			if err := d.Fail[name]; err != nil {
				return err
			}
			if d.live[resource] {
				return fmt.Errorf("%s already exists", resource)
			}
			if d.live == nil {
				d.live = map[string]bool{}
			}
			d.live[resource] = true
			return nil
		},
	}
}

// Live lists the resources that exist now, sorted.
func (d *Driver) Live() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := []string{}
	for name := range d.live {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Removers removes the resources of these drivers.
func Removers(drivers ...*Driver) step.Removers {
	return step.Removers{Kind: func(_ context.Context, r step.Resource) error {
		for _, d := range drivers {
			if d.DriverName == r.Host {
				d.mu.Lock()
				delete(d.live, r.Name)
				d.mu.Unlock()
			}
		}
		return nil
	}}
}
