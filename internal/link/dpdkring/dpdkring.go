// SPDX-License-Identifier: Apache-2.0

// Package dpdkring joins two DPDK applications by rings in shared memory: one
// is EAL's primary process, the other its secondary. Published work uses this
// design; it is here for comparison and gives no isolation.
package dpdkring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Name is the transport's name in a chain file.
const Name = "dpdk-ring"

// maxMTU is the limit that net_mpring reports: packets go by pointer.
const maxMTU = 9216

// New returns the driver.
func New() transport.Driver { return transport.Define(Name, caps, probe, build).Checking(checkEnds) }

var caps = inventory.Caps{
	Faces:      []string{string(chain.FaceDPDK)},
	Isolation:  string(chain.IsolationSlice),
	MinEnds:    2,
	MaxEnds:    2,
	MaxMTU:     maxMTU,
	Rank:       -2,
	Privileged: true,
	HugePages:  true,
	OneUser:    true,
	Privileges: "all DPDK memory and EAL state of both functions shared, through one hugetlbfs mount; the same user",
	Processes:  0,
	Copies:     0,
	KernelPath: "none: pointers in two rings, in memory shared by both functions",
	Note: "either end can change all DPDK memory of the other, and if one is killed during a pool operation, the other may hang; " +
		"the second end is a secondary EAL process: it ends with the first and must use the same DPDK; not for containers",
}

// Probe looks for the driver's file and for huge pages. The planner checks
// whether enough are free.
func probe(context.Context) inventory.Item {
	item := dpdk.ProbeDriver()
	if item.Name = Name; item.Status != inventory.OK {
		return item
	}
	if err := host.ProbeHugePages(); err != nil {
		return host.ProbeItem(Name, err)
	}
	return dpdk.Probe(Name, dpdk.NetRing)
}

func build(s transport.Spec) (*transport.Build, error) {
	dir := filepath.Join(s.Dir, "ring")
	huge := filepath.Join(dir, dpdk.HugeDir)
	build := transport.NewBuild(
		step.Step{
			Name:  s.StepName(Name, "create the directory that the ends share"),
			Makes: []step.Resource{host.DirResource(dir)},
			Do: func(context.Context) error {
				if err := os.Mkdir(dir, 0o700); err != nil {
					return err
				}
				if err := host.ShortenDir(dir, dpdk.RingSockets...); err != nil {
					return err
				}
				return os.Mkdir(huge, 0o700)
			},
		},
		step.Step{
			Name:  s.StepName(Name, "mount huge pages"),
			Makes: []step.Resource{host.MountResource(huge)},
			Do:    func(context.Context) error { return host.MountHugePages(huge, s.Ends[0].User) },
		},
		// After the mount, so that nobody else can put something in its place.
		step.Step{
			Name: s.StepName(Name, "give the directory to the ends"),
			Do:   func(context.Context) error { return os.Chown(dir, s.Ends[0].User, -1) },
		},
	)
	build.Report.Engine = "net_mpring, in the functions' own DPDK"
	build.Report.Vdevs = []transport.Vdev{vdev(s.Ends[0], dir, true), vdev(s.Ends[1], dir, false)}
	return build, nil
}

// vdev is the device of an end. The first end is the primary process.
func vdev(e transport.End, dir string, primary bool) transport.Vdev {
	v := transport.Vdev{Function: e.Function, Port: e.Name, Dir: dir}
	role := "primary"
	if v.Driver, v.Clears = dpdk.NetMPRing, true; !primary {
		role = "secondary"
		v.Driver, v.Clears, v.Awaits = dpdk.NetMPRingPeer, false, dpdk.RingSocket
	}
	v.Options = fmt.Sprintf("role=%s,socket={dir}/%s,mac=%s", role, dpdk.RingSocket, e.MAC)
	return v
}

// checkEnds reports why two functions cannot be two processes of one EAL.
func checkEnds(s transport.Spec) error {
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf(format, args...))
	}
	for _, e := range s.Ends {
		if e.Runtime != chain.RuntimeProcess {
			refuse("function %s has the runtime %s, but only processes that dray starts as the same user share huge pages and their path; use runtime process", e.Function, e.Runtime)
		}
		if e.Queues > 1 {
			refuse("port %s has %d queues, but a ring is one queue; leave out queues", e.Name, e.Queues)
		}
	}
	if len(s.Ends) != 2 {
		return errors.Join(errs...)
	}
	a, b := s.Ends[0], s.Ends[1]
	if a.User != b.User {
		refuse("%s and %s are different users of the host (%d and %d), and EAL shares memory with no other user; run both as the same user", a.Function, b.Function, a.User, b.User)
	}
	if a.Function == b.Function {
		refuse("both ends are ports of %s, and only two different processes can share this memory; use two functions", a.Function)
	}
	return errors.Join(errs...)
}
