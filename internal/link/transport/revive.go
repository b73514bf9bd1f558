// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"

	"github.com/drayage/dray/internal/host"
)

// Reviver is implemented by a driver whose links have host processes that can
// restart after they end, while the ports stay unchanged.
type Reviver interface {
	// Revive starts the link's processes that do not run, and returns once the
	// link works. It notes them in the report of the link's Build. s is the
	// spec that Build had.
	Revive(ctx context.Context, s Spec, r *Report) error
}

// Note records a process that carries the link's traffic, replacing an ended
// one of that name; log is its output file, and polls is Process.Polls.
func (r *Report) Note(name string, id host.ProcessID, log string, polls ...string) {
	p := Process{Name: name, ID: id, Log: log, Polls: polls}
	for i := range r.Processes {
		if r.Processes[i].Name == name {
			r.Processes[i] = p
			return
		}
	}
	r.Processes = append(r.Processes, p)
}
