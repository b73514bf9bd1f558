// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Definition is a driver made of data and two functions. A driver with more
// methods embeds it.
type Definition struct {
	name  string
	caps  inventory.Caps
	probe func(context.Context) inventory.Item
	check func(Spec) error // nil: only Check
	build func(Spec) (*Build, error)
}

// Define defines a driver. build gets only specs that pass Check.
func Define(name string, caps inventory.Caps, probe func(context.Context) inventory.Item, build func(Spec) (*Build, error)) Definition {
	return Definition{name: name, caps: caps, probe: probe, build: build}
}

// Checking is the driver that refuses a spec for the reasons of check too.
func (d Definition) Checking(check func(Spec) error) Definition {
	d.check = check
	return d
}

// Name implements Driver.
func (d Definition) Name() string { return d.name }

// Caps implements Driver.
func (d Definition) Caps() inventory.Caps { return d.caps }

// Probe implements Driver.
func (d Definition) Probe(ctx context.Context) inventory.Item {
	item := d.probe(ctx)
	item.Name = d.name
	return item
}

// Build implements Driver.
func (d Definition) Build(s Spec) (*Build, error) {
	err := Check(d.name, d.caps, s)
	if d.check != nil {
		err = errors.Join(err, s.Refuse(d.name, d.check(s)))
	}
	if err != nil {
		return nil, err
	}
	return d.build(s)
}

// Interfaces are the capabilities of a driver whose ports are the kernel's
// interfaces, with the common values in place of zero ones.
func Interfaces(caps inventory.Caps) inventory.Caps {
	caps.Faces = []string{string(chain.FaceNetdev)}
	caps.Isolation = string(chain.IsolationNoSharedMemory)
	caps.Shapes = true
	caps.MaxMTU = cmp.Or(caps.MaxMTU, 65535)
	caps.Privileges = "none"
	caps.Copies = cmp.Or(caps.Copies, 2)
	return caps
}

// Try is a probe that succeeds if each attempt does, in that order.
func Try(attempts ...func() error) func(context.Context) inventory.Item {
	return TryVersion(func(context.Context) (string, error) { return "", firstError(attempts) })
}

// TryVersion is a probe that also finds the version of the driver's switch, and
// then makes the other attempts.
func TryVersion(find func(context.Context) (string, error), attempts ...func() error) func(context.Context) inventory.Item {
	return func(ctx context.Context) inventory.Item {
		version, err := find(ctx)
		if err == nil {
			err = firstError(attempts)
		}
		item := host.ProbeItem("", err)
		item.Version = version
		return item
	}
}

func firstError(attempts []func() error) error {
	for _, attempt := range attempts {
		if err := attempt(); err != nil {
			return err
		}
	}
	return nil
}

// Refuse says that the link cannot use the driver, and why; nil if err is nil.
func (s Spec) Refuse(driver string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("link %s cannot use transport %s: %w", s.Link, driver, err)
}
