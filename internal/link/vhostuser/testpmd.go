// SPDX-License-Identifier: Apache-2.0

package vhostuser

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/sidecar"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/vhost"
	"github.com/drayage/dray/internal/spec/cpulist"
	"github.com/drayage/dray/internal/spec/inventory"
)

const program = "dpdk-testpmd"

// versionTimeout bounds the time to print the version.
const versionTimeout = 30 * time.Second

// testpmd's memory.
const (
	mbufs        = 8192 // most packets in flight
	ethernet     = 22   // header and VLAN tag, in bytes
	headroom     = 128  // before each packet, in bytes
	otherMemory  = 64   // MiB of EAL and the drivers
	processLimit = 512  // MiB in addition to the packets; memory shared by applications is charged here
)

var packetMemory = inventory.PacketMemory{
	Other: otherMemory << 20, Buffers: mbufs, Extra: ethernet + headroom, Align: 64, Least: 2048 + headroom, Record: 256,
}

// quiet is the longest interval of testpmd's statistics, in seconds: Debian 13's refuses
// 65,535. With an interval, testpmd ignores its input, and does not exit when that ends.
const quiet = 1<<16 - 2

// testpmd is the switch process of a link, on those CPUs.
func testpmd(s transport.Spec, cpus []int) sidecar.Process {
	size, memory := packetMemory.Buffer(s.MTU), packetMemory.MiB(s.MTU, len(s.Ends))
	e := sidecar.Process{
		Name: program, Dir: filepath.Join(s.Dir, "switch"), Cgroup: s.Cgroup, Owner: vhost.Owner(s),
		Binds: vhost.Binds(s), Files: vhost.Users(s), HugePages: vhost.HugePages(s), CPUs: cpus, Memory: uint64(memory+processLimit) << 20,
	}
	pages := []string{"--no-huge", "--no-shconf"}
	if e.HugePages {
		pages = []string{"--in-memory"}
	}
	eal := append(pages, "-m", strconv.Itoa(memory), "--no-pci", "--no-telemetry",
		"--lcores", lcores(cpus))
	for i, end := range s.Ends {
		eal = append(eal, "--vdev", fmt.Sprintf("net_vhost%d,iface=%s,client=1,queues=%d", i, vhost.Socket(i), vhost.Queues(end)))
	}
	n := vhost.Queues(s.Ends[0])
	app := []string{
		"--forward-mode=io", "--nb-cores=1", fmt.Sprintf("--rxq=%d", n), fmt.Sprintf("--txq=%d", n),
		fmt.Sprintf("--total-num-mbufs=%d", mbufs), fmt.Sprintf("--mbuf-size=%d", size),
		// The links come up when the applications start.
		"--disable-link-check", fmt.Sprintf("--stats-period=%d", quiet),
	}
	// Line-buffered: otherwise the line ready would never arrive.
	e.Args = append([]string{"/usr/bin/stdbuf", "--output=L", "/usr/bin/" + program}, eal...)
	e.Args = append(append(e.Args, "--"), app...)
	return e
}

// lcores are testpmd's two threads: one sleeps and one forwards.
func lcores(cpus []int) string {
	set := "(" + cpulist.Format(cpus) + ")"
	return "0@" + set + ",1@" + set
}

// ready is printed by testpmd once it forwards.
const ready = "Logical Core 1 "

// start starts or restarts testpmd.
func start(ctx context.Context, s transport.Spec, r *transport.Report) error {
	version, err := testpmdVersion(ctx)
	if err != nil {
		return err
	}
	cpus := s.CPUs
	if len(cpus) == 0 {
		if cpus, err = host.AllowedCPUs(); err != nil {
			return err
		}
	}
	e := testpmd(s, cpus)
	logged := e.LogSize()
	id, err := e.Start(ctx)
	if err != nil {
		return err
	}
	if err := e.Await(ctx, id, func() bool { return e.Logged(logged, ready) }); err != nil {
		return err
	}
	r.Engine = "testpmd, DPDK " + version
	r.Note(program, id, e.Log(), worker, newerWorker)
	return nil
}

// The names of DPDK's threads, without their numbers: until 23.07, and since.
const (
	worker      = "rte-worker-"
	newerWorker = "dpdk-worker"
)

// path is Debian's testpmd: another one's libraries are not visible inside.
const path = "/usr/bin/" + program

func lookup() (string, error) { return host.NeedProgram(Name, path, "dpdk") }

// testpmdVersion asks testpmd for the version of DPDK.
func testpmdVersion(ctx context.Context) (string, error) {
	answer, err := host.Helper{Program: path, Args: []string{"-v", "-h"}, Package: "dpdk", Limit: versionTimeout}.Run(ctx)
	_, rest, found := strings.Cut(answer.Text(), "RTE Version: 'DPDK ")
	version, _, closed := strings.Cut(rest, "'")
	if !found || !closed { // it also fails after printing it
		return "", cmp.Or(err, fmt.Errorf("%s -v does not report its version: %.200s", path, answer.Text()))
	}
	return version, nil
}
