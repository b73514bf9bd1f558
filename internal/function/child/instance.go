// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"

	"github.com/drayage/dray/internal/host"
)

// Instance is a function's running command; it implements runtime.Instance. The
// child is the command itself, or represents it.
type Instance struct {
	*Child
	id        host.ProcessID
	terminate func(host.ProcessID)
	kill      func() error
}

// Instance is the child as the command whose first process is pid. terminate asks
// that process to end; kill ends a command that does not.
func (c *Child) Instance(pid int, terminate func(host.ProcessID), kill func() error) *Instance {
	id, err := host.Identify(pid)
	if err != nil { // it has ended already
		id = host.ProcessID{PID: pid}
	}
	return &Instance{Child: c, id: id, terminate: terminate, kill: kill}
}

// ID implements runtime.Instance.
func (i *Instance) ID() host.ProcessID { return i.id }

// Stop implements runtime.Instance.
func (i *Instance) Stop(ctx context.Context) error {
	i.terminate(i.id)
	return i.End(ctx, i.kill)
}

// Finish waits for the end as End does, and returns the exit status as Wait does.
func (c *Child) Finish(ctx context.Context, kill func() error) (int, error) {
	if err := c.End(ctx, kill); err != nil {
		return 0, err
	}
	return c.Wait()
}
