// SPDX-License-Identifier: Apache-2.0

// Package all lists the runtimes that are built in.
package all

import (
	"github.com/drayage/dray/internal/function/docker"
	"github.com/drayage/dray/internal/function/dockercli"
	"github.com/drayage/dray/internal/function/external"
	"github.com/drayage/dray/internal/function/process"
	"github.com/drayage/dray/internal/function/runc"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/function/vm"
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
