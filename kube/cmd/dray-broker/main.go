// SPDX-License-Identifier: Apache-2.0

// dray-broker serves the sockets and the memory of all native ports of a
// node's pods, and lets the DPDK applications of memif links meet. No packet
// passes through it, and links outlive it: the next dray-broker adopts them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/spec/release"
	"github.com/drayage/dray/kube/internal/layout"
	"github.com/drayage/dray/kube/internal/meet"
	"github.com/drayage/dray/kube/internal/nodenet"
)

func main() {
	state := flag.String("state", layout.State, "`directory` that this node's dray-node uses, too")
	version := flag.Bool("version", false, "print the version and exit")
	flag.Parse()
	if *version {
		fmt.Println(release.Text("dray-broker"))
		return
	}
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "dray-broker: unexpected argument %q; see --help\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *state); err != nil {
		fmt.Fprintln(os.Stderr, "dray-broker:", err)
		os.Exit(1)
	}
}

// run serves ports and meetings until ctx ends, or one of the two fails.
func run(ctx context.Context, state string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	met := make(chan error, 1)
	go func() {
		defer stop()
		met <- meet.Serve(ctx, layout.Meet(state), slog.New(slog.NewTextHandler(os.Stderr, nil)))
	}()
	err := broker.Serve(ctx, broker.Options{
		Dir: layout.Broker(state), Log: os.Stderr, Sockets: sockets(ctx, layout.Net(state)),
		Ready: func() { fmt.Fprintln(os.Stderr, release.Text("dray-broker"), "serves", layout.Broker(state)) },
	})
	stop()
	return errors.Join(err, <-met)
}

// sockets has dray-net open the packet sockets of a link to another node, for the broker
// can enter no namespace.
func sockets(ctx context.Context, dir string) func(*broker.End, int) ([]int, error) {
	client := nodenet.Client{Dir: dir}
	return func(e *broker.End, queues int) ([]int, error) {
		return client.Sockets(ctx, e.Netns, e.Interface, queues)
	}
}
