// SPDX-License-Identifier: Apache-2.0

package runc

import (
	"context"

	"github.com/drayage/dray/internal/function/child"
	"github.com/drayage/dray/internal/host"
)

type instance struct {
	*child.Child // runc, which waits for the container
	id           host.ProcessID
	cgroup       host.Cgroup
}

// ID implements runtime.Instance.
func (i *instance) ID() host.ProcessID { return i.id }

// Stop implements runtime.Instance.
func (i *instance) Stop(ctx context.Context) error {
	child.Terminate(i.id)
	return i.End(ctx, func() error { return child.KillCgroup(i.cgroup) })
}
