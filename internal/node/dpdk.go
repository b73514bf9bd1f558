// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/plan"
)

// Device is how a program of the host opens a dpdk port in place of the function's
// own: with these arguments of EAL, under that name. Both are empty for a port
// with another face. EAL's files belong in the function's Sandbox.RuntimeDir.
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
		return nil, "", fmt.Errorf("port %s: its link's transport has told of no DPDK device", e)
	}
	if eal, err = app.EAL(); err != nil {
		return nil, "", fmt.Errorf("port %s: %w", e, err)
	}
	return eal, app.Devices()[0].Name, nil
}
