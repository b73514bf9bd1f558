// SPDX-License-Identifier: Apache-2.0

package node

import "github.com/drayage/dray/internal/host"

// Cgroup is the root of the control groups of everything that the chain runs.
func (l *Live) Cgroup() host.Cgroup { return l.node.cgroupOf(l.Chain.Name) }
