// SPDX-License-Identifier: Apache-2.0

// dray-switch is the switch of a node: it runs Open vSwitch with DPDK, for vhost-user ports of pods
// and for links to other nodes.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/drayage/dray/internal/spec/cpulist"
	"github.com/drayage/dray/internal/spec/release"
	"github.com/drayage/dray/kube/internal/layout"
	"github.com/drayage/dray/kube/internal/nodeswitch"
	"github.com/drayage/dray/kube/internal/switchd"
)

func main() {
	state := flag.String("state", layout.State, "`directory` that this node's dray-node uses, too")
	o := switchd.Options{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	flag.StringVar(&o.Run, "run", "/run/openvswitch", "`directory` of Open vSwitch's database and sockets")
	flag.StringVar(&o.Device, "device", "eth0", "`interface` of this network namespace that carries tunnels")
	flag.IntVar(&o.Port, "port", switchd.Port, "UDP `port` of tunnels; all switches of a cluster have the same")
	flag.IntVar(&o.Memory, "memory", 1024, "memory of packets in `MiB`; a port takes about 75 with an MTU of 1500, and 250 with 9000")
	flag.BoolVar(&o.Poll, "poll", false, "never sleep: it keeps the CPUs busy, and takes up to 50 µs less for a packet after a pause")
	cpus := flag.String("cpus", "", "`CPUs` that poll, such as 2,4-5; default: the last that this container may use")
	version := flag.Bool("version", false, "print the version and exit")
	flag.Usage = usage
	flag.Parse()
	if *version {
		fmt.Println(release.Text("dray-switch"))
		return
	}
	o.Dir = layout.Switch(*state)
	if err := run(o, *cpus, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "dray-switch:", err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, `usage: dray-switch [flags]        serve dray-node
       dray-switch [flags] list   print this node's links, with the number (VNI) at which it receives each, and what is wrong

Exit status: 0 ended as asked, 1 failed, 2 wrong usage.`)
	flag.PrintDefaults()
}

func run(o switchd.Options, cpus string, args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch {
	case len(args) == 1 && args[0] == "list":
		return list(ctx, nodeswitch.Client{Dir: o.Dir})
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q; see --help", args[0])
	}
	if cpus != "" {
		var err error
		if o.CPUs, err = cpulist.Parse(cpus); err != nil {
			return fmt.Errorf("--cpus: %w", err)
		}
	}
	return switchd.Serve(ctx, o)
}

func list(ctx context.Context, c nodeswitch.Client) error {
	links, err := c.List(ctx)
	for _, l := range links {
		fmt.Println(l.Name, l.VNI, l.Error)
		for end, fault := range l.Faults {
			fmt.Printf("  end %d: %s\n", end, fault)
		}
	}
	return err
}
