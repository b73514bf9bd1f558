// SPDX-License-Identifier: Apache-2.0

// Command dray-operator plans Chain objects and reports on them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

const usage = `dray-operator plans Chain objects (drayage.io/v1alpha1): it makes a
ResourceClaimTemplate for each function, and reports in each chain's status
which links are up and whether they meet their requirements.

In a cluster it finds the API server by itself; elsewhere, KUBECONFIG names a
file. Logs go to standard error, one JSON object a line.

Usage: dray-operator [flags]

Exit codes: 0 after SIGTERM, 1 error, 2 wrong usage

Flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, argv []string, out, errs io.Writer) int {
	o, err := parse(argv, out, errs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	log := logr.FromSlogHandler(slog.NewJSONHandler(errs, &slog.HandlerOptions{Level: level}))
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	if err := serve(ctx, o); err != nil {
		log.Error(err, "dray-operator ends")
		return 1
	}
	return 0
}

// options are the flags of the program.
type options struct {
	namespace, probes, metrics string
	elect, verbose             bool
}

func parse(argv []string, out, errs io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("dray-operator", flag.ContinueOnError)
	f.StringVar(&o.namespace, "namespace", "dray-system", "the `namespace` of the nodes' inventories and of the lease")
	f.StringVar(&o.probes, "probes", ":8081", "the `address` for /healthz and /readyz; 0: none")
	f.StringVar(&o.metrics, "metrics", "0", "the `address` for /metrics; 0: none")
	f.BoolVar(&o.elect, "leader-elect", false, "take the lease dray-operator first, so that several replicas can run")
	f.BoolVar(&o.verbose, "verbose", false, "log more")
	f.SetOutput(io.Discard)
	err := f.Parse(argv)
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		f.SetOutput(out)
		f.PrintDefaults()
	case err != nil:
		fmt.Fprintf(errs, "dray-operator: %v; see dray-operator --help\n", err)
	}
	return o, err
}
