// SPDX-License-Identifier: Apache-2.0

// Package afxdp joins two DPDK applications by a veth pair; each opens its end
// with an AF_XDP socket of DPDK's driver net_af_xdp.
package afxdp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Name is the transport's name in a chain file.
const Name = "af-xdp"

// maxMTU fits into one default buffer of a DPDK application.
const maxMTU = 1500

// capabilities are the ones that net_af_xdp needed in tests, in the host's
// user namespace. It loads a program and finds it again (CAP_SYS_ADMIN),
// attaches it, opens the socket, and pins more memory than RLIMIT_MEMLOCK.
var capabilities = []string{"CAP_IPC_LOCK", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN"}

// New returns the driver.
func New() transport.Driver {
	return transport.Define(Name, caps, probe, build).Checking(checkRuntimes)
}

var caps = inventory.Caps{
	Faces:      []string{string(chain.FaceDPDK)},
	Isolation:  string(chain.IsolationNoSharedMemory),
	MinEnds:    2,
	MaxEnds:    2,
	MaxMTU:     maxMTU,
	Rank:       70,
	Privileged: true,
	HugePages:  true,
	Privileges: "CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW and CAP_IPC_LOCK of the host",
	Copies:     2,
	KernelPath: "AF_XDP socket in copy mode, veth transmit, XDP program of the peer, AF_XDP socket",
	Note:       "with plain pages the driver loses packets, because it assumes contiguous packet memory; not for functions in a user namespace (runtime runc): the kernel lets only the host's own capabilities load XDP programs",
}

// Probe tries to create the pair and an AF_XDP socket.
func probe(context.Context) inventory.Item {
	item := dpdk.Probe(Name, dpdk.NetAFXDP)
	if item.Status != inventory.OK {
		item.Fix = "apt-get install librte-net-af-xdp*"
		return item
	}
	if err := errors.Join(host.ProbeVeth(), host.ProbeXDPSocket()); err != nil {
		return host.ProbeItem(Name, err)
	}
	return item
}

func build(s transport.Spec) (*transport.Build, error) {
	inner := s
	inner.Ends = slices.Clone(s.Ends)
	for i := range inner.Ends {
		inner.Ends[i].IP = netip.Prefix{} // so that no kernel answers for the application
		inner.Ends[i].Queues = queues(s.Ends[i])
	}
	a, b := inner.Ends[0], inner.Ends[1]
	build := transport.NewBuild(step.Step{
		Name:  s.StepName(Name, "create pair"),
		Makes: []step.Resource{transport.PortResource(a), transport.PortResource(b)},
		Do:    func(context.Context) error { return host.CreateVeth(inner.Iface(a), inner.Iface(b)) },
	})
	build.Report.Engine = "net_af_xdp, in the functions' own DPDK"
	for _, e := range inner.Ends {
		build.Report.Vdevs = append(build.Report.Vdevs, transport.Vdev{
			Function: e.Function, Port: e.Name, Driver: dpdk.NetAFXDP,
			Options:      fmt.Sprintf("iface=%s,start_queue=0,queue_count=%d", e.Name, e.Queues),
			Capabilities: capabilities,
		})
	}
	build.Finish(Name, inner)
	return build, nil
}

func queues(e transport.End) int { return max(1, e.Queues) }

func checkRuntimes(s transport.Spec) error {
	var errs []error
	for _, e := range s.Ends {
		if e.Runtime == chain.RuntimeRunc {
			errs = append(errs, fmt.Errorf("function %s has the runtime runc, and the kernel loads no XDP program from its user namespace; use runtime docker or process", e.Function))
		}
	}
	return errors.Join(errs...)
}
