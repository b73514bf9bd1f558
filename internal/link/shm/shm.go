// SPDX-License-Identifier: Apache-2.0

// Package shm joins two native or dpdk ports by memory that only their two
// applications share. The chain's broker creates the memory and sends it to
// them; the broker is not on the data path. A virtual machine has the memory as a
// PCI device (ivshmem-plain).
package shm

import (
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/native"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Name is the transport's name in a chain file.
const Name = "shm"

type driver struct{ transport.Definition }

// New returns the driver.
func New() transport.Driver {
	return driver{transport.Define(Name, caps, transport.Try(host.ProbeSealedMemory), build)}
}

var caps = inventory.Caps{
	Faces:         []string{string(chain.FaceNative), string(chain.FaceDPDK)},
	MachineMemory: true,
	PortQueues:    true,
	Isolation:     string(chain.IsolationLink),
	MinEnds:       2,
	MaxEnds:       2,
	MaxMTU:        65535,
	MaxMessage:    4 << 20,
	Rank:          5,
	Privileges:    "none",
	Processes:     1,
	Copies:        0,
	KernelPath:    "none: descriptor rings in memory that the two ends share; a socket wakes a sleeping end",
	Note:          "the process is the chain's broker, which all its links share; traffic continues without it",
}

// Removers implements transport.Cleaner.
func (driver) Removers() step.Removers { return native.Removers() }

func build(s transport.Spec) (*transport.Build, error) {
	build := transport.NewBuild()
	build.Report.Engine = "dray daemon"
	return build, native.Serve(build, Name, s, broker.KindShm, nil)
}
