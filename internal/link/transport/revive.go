// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"

	"github.com/drayage/dray/internal/host"
)

// Reviver is implemented by a driver whose links have processes of the host that
// can be started anew when they end, while the ports stay as they are.
type Reviver interface {
	// Revive starts those of the link's processes that do not run, and returns
	// once the link works; it notes them in the report, which is that of the
	// link's Build. s is what Build had.
	Revive(ctx context.Context, s Spec, r *Report) error
}

// Note notes a process that carries the link's traffic, in place of one of that
// name which has ended; log is where its output goes.
func (r *Report) Note(name string, id host.ProcessID, log string) {
	p := Process{Name: name, ID: id, Log: log}
	for i := range r.Processes {
		if r.Processes[i].Name == name {
			r.Processes[i] = p
			return
		}
	}
	r.Processes = append(r.Processes, p)
}
