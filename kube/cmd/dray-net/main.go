// SPDX-License-Identifier: Apache-2.0

// dray-net makes the network side of a node's links to other nodes: namespaces
// and tunnels. No packet passes through it. "dray-net keep" holds the
// namespaces meanwhile, so they outlive it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"github.com/drayage/dray/internal/spec/release"
	"github.com/drayage/dray/kube/internal/layout"
	"github.com/drayage/dray/kube/internal/nodenet"
)

func main() {
	state := flag.String("state", layout.State, "`directory` that this node's dray-node uses, too")
	address := flag.String("address", os.Getenv("NODE_ADDRESS"), "IPv4 `address` of this node, at which it receives tunnels; default $NODE_ADDRESS")
	pods := flag.String("pods", nodenet.Pods, "`directory` in which the container runtime keeps the network namespaces of pods")
	version := flag.Bool("version", false, "print the version and exit")
	flag.Usage = usage
	flag.Parse()
	if *version {
		fmt.Println(release.Text("dray-net"))
		return
	}
	if err := run(layout.Net(*state), *address, *pods, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "dray-net:", err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: dray-net [flags]        serve dray-node and dray-broker\n       dray-net [flags] keep   hold what dray-net has made\n       dray-net [flags] list   print this node's halves of links, with the VNI at which it receives each\n       dray-net [flags] list-kept   print the halves that the keeper holds")
	flag.PrintDefaults()
}

func run(dir, address, pods string, args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch {
	case len(args) == 1 && args[0] == "keep":
		return nodenet.Keep(ctx, dir)
	case len(args) == 1 && args[0] == "list":
		return list(ctx, nodenet.Client{Dir: dir})
	case len(args) == 1 && args[0] == "list-kept":
		return listKept(ctx, dir)
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q; see --help", args[0])
	case address == "":
		return fmt.Errorf("at which address does this node receive? set --address or NODE_ADDRESS")
	}
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return fmt.Errorf("the node's address: %w", err)
	}
	return nodenet.Serve(ctx, nodenet.Options{Dir: dir, Addr: addr, Pods: pods, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
}

func list(ctx context.Context, c nodenet.Client) error {
	halves, err := c.List(ctx)
	for _, h := range halves {
		fmt.Println(h.Name, h.VNI)
	}
	return err
}

func listKept(ctx context.Context, dir string) error {
	names, err := nodenet.Kept(ctx, dir)
	for _, name := range names {
		fmt.Println(name)
	}
	return err
}
