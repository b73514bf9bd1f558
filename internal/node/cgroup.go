// SPDX-License-Identifier: Apache-2.0

package node

import "github.com/drayage/dray/internal/host"

// Cgroup is the root of the chain's control groups.
func (l *Live) Cgroup() host.Cgroup { return l.node.Cgroup(l.Chain.Name) }

// FunctionCgroup holds a function's command and its instruments.
func (l *Live) FunctionCgroup(name string) host.Cgroup { return functionCgroup(l.Cgroup(), name) }

func functionCgroup(chain host.Cgroup, name string) host.Cgroup { return chain.Child("fn-" + name) }
