// SPDX-License-Identifier: Apache-2.0

// Package all lists the runtimes that are built in.
package all

import (
	"github.com/drayage/dray/internal/runtime"
	"github.com/drayage/dray/internal/runtime/docker"
	"github.com/drayage/dray/internal/runtime/dockercli"
	"github.com/drayage/dray/internal/runtime/external"
	"github.com/drayage/dray/internal/runtime/process"
	"github.com/drayage/dray/internal/runtime/runc"
	"github.com/drayage/dray/internal/runtime/vm"
)

// All returns every runtime, the default one first. Docker is the daemon that
// DOCKER_HOST names, or the default one.
func All() []runtime.Runtime {
	client := dockercli.FromEnvironment()
	return []runtime.Runtime{
		runc.New(),
		docker.New(docker.Options{Client: client}),
		process.New(),
		vm.New(),
		external.New(client),
	}
}
