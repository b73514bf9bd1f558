// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"slices"

	"github.com/drayage/dray/internal/plan"
)

// Backends are the transports that nodes make on one node, and what moves the packets of a
// port there that libdray opens.
var Backends = map[string]plan.Backend{shm: plan.BackendShm, "bridge": plan.BackendNetdev}

// Moved is a link of one node over another transport, under its open ports. The error says
// why it cannot move.
func Moved(l plan.Link, transport string) (plan.Link, error) {
	if l.Transport == transport {
		return l, nil
	}
	backend, known := Backends[transport]
	if _, from := Backends[l.Transport]; !known || !from {
		return l, fmt.Errorf("nodes cannot move a link from %s to %s", l.Transport, transport)
	}
	if l.Shape != nil || slices.ContainsFunc(l.Ends, func(e plan.End) bool { return e.Shape != nil }) {
		return l, errors.New("its ports have a limit or a qdisc, which an open port keeps")
	}
	l.Transport, l.Ends = transport, slices.Clone(l.Ends)
	for i := range l.Ends {
		if !l.Ends[i].Brokered() {
			return l, fmt.Errorf("its port %s is an interface, which belongs to its transport", l.Ends[i])
		}
		l.Ends[i].Backend = backend
	}
	return l, nil
}

// CanBecome reports whether a link can become another one while its ports are open.
func CanBecome(was, is plan.Link) error {
	moved, err := Moved(was, is.Transport)
	if err == nil && !Same(moved, is) {
		err = errors.New("its ports would change")
	}
	return err
}
