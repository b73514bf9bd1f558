// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
)

// Device lets a host program open a dpdk port instead of the function: with these
// EAL arguments, under that name. Both are empty for a port with another face.
// EAL's files belong in the function's Sandbox.RuntimeDir.
func (l *Live) Device(e plan.End) (eal []string, name string, err error) {
	if e.Face != chain.FaceDPDK {
		return nil, "", nil
	}
	f, err := l.function(e.Function)
	if err != nil {
		return nil, "", err
	}
	all, err := l.spec(*f).Application(false)
	if err != nil {
		return nil, "", fmt.Errorf("port %s: %w", e, err)
	}
	app, ok := all.Only(e.Port)
	if !ok {
		return nil, "", fmt.Errorf("port %s: its link's transport has provided no DPDK device", e)
	}
	if eal, err = app.EAL(); err != nil {
		return nil, "", fmt.Errorf("port %s: %w", e, err)
	}
	return eal, app.Devices()[0].Name, nil
}

// fileEAL holds the arguments of an external function.
const fileEAL = "eal"

// tellExternal writes EAL's arguments for the program that runs the function:
// Drayage does not start its command.
func (l *Live) tellExternal(f chain.Function) error {
	spec := l.spec(f)
	if f.Runtime != chain.RuntimeExternal || len(spec.Vdevs) == 0 {
		return nil
	}
	app, err := spec.Application(false)
	if err != nil {
		return fmt.Errorf("function %s: %w", f.Name, err)
	}
	eal, err := app.EAL()
	if err != nil {
		return fmt.Errorf("function %s: %w", f.Name, err)
	}
	return host.MakeFile(filepath.Join(spec.Dir, fileEAL), []byte(strings.Join(eal, " ")+"\n"), 0o644)
}
