// SPDX-License-Identifier: Apache-2.0

// Command bench runs one of the developers' benches: `make bench` runs all of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/measure/microbench"
)

const usage = `usage: bench libdray|idle|dpdk|vnf|iq [--quick] [--json FILE] [--rounds N] [--kills N] [--seconds N]
Run it in the folder of the repository, after make has built what it measures.
  libdray  libdray beside a bare ring, pipes and sockets; kill -9 of its ends
  idle     CPU time and latency of an adaptive receiver, only (part of libdray)
  dpdk     net_dray beside memif, vhost-user and Open vSwitch
  vnf      cycles of a packet in each function of dray-vnf
  iq       subframes of I/Q samples through libdray_iq beside ZeroMQ
exit: 0 done, 1 error, or a kill lost a packet or leaked a buffer, 2 usage
`

// options of the command line.
type options struct {
	bench, json   string
	quick         bool
	rounds, kills int
	seconds       float64
}

func main() {
	o, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	err = run(ctx, o, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	if len(args) == 0 {
		return options{}, errors.New("no bench")
	}
	o := options{bench: args[0]}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.BoolVar(&o.quick, "quick", false, "")
	f.StringVar(&o.json, "json", "", "")
	f.IntVar(&o.rounds, "rounds", 0, "")
	f.IntVar(&o.kills, "kills", -1, "")
	f.Float64Var(&o.seconds, "seconds", 0, "")
	if err := f.Parse(args[1:]); err != nil {
		return o, err
	}
	if benches[o.bench] == nil || f.NArg() > 0 || o.rounds < 0 || o.rounds > 1000 || o.kills > 100_000 {
		return o, errors.New("arguments")
	}
	return o, nil
}

// benches by their names on the command line.
var benches = map[string]func(context.Context, options, io.Writer, io.Writer) (*microbench.Figures, error){
	"libdray": libdray, "idle": idle, "dpdk": dpdk, "vnf": vnf, "iq": iq,
}

func run(ctx context.Context, o options, out, log io.Writer) error {
	figures, err := benches[o.bench](ctx, o, out, log)
	if figures == nil {
		return err
	}
	return errors.Join(err, figures.Document().Write(o.json))
}

// built is a program below meson's build directory.
func built(parts ...string) string { return filepath.Join(append([]string{"out"}, parts...)...) }

// orElse is n, or the profile's default if the command line sets none.
func orElse(n, unset int, quick bool, short, long int) int {
	switch {
	case n != unset:
		return n
	case quick:
		return short
	}
	return long
}

func libdray(ctx context.Context, o options, out, log io.Writer) (*microbench.Figures, error) {
	return microbench.Libdray{
		Probe:        built("port-plain", "bench", "dray-probe"),
		Unchecked:    built("port-plain", "bench", "dray-probe-unchecked"),
		Classless:    built("port-plain", "bench", "dray-probe-classless"),
		Instructions: "dataplane/port/bench/instructions.sh",
		Rounds:       orElse(o.rounds, 0, o.quick, 5, 20),
		Kills:        orElse(o.kills, -1, o.quick, 35, 1000),
		Quick:        o.quick, Out: out, Log: log,
	}.Run(ctx)
}

func idle(ctx context.Context, o options, out, log io.Writer) (*microbench.Figures, error) {
	return microbench.Idle{
		Probe:  built("port-plain", "bench", "dray-probe"),
		Rounds: orElse(o.rounds, 0, o.quick, 5, 20),
		Out:    out, Log: log,
	}.Run(ctx)
}

func dpdk(ctx context.Context, o options, out, log io.Writer) (*microbench.Figures, error) {
	b := microbench.DPDK{
		Driver: "bin/librte_net_dray.so", Generator: "bin/draygen-dpdk", VNF: "bin/dray-vnf",
		Broker:  built("pmd-plain", "tests", "serve"),
		Cost:    built("pmd-plain", "bench", "dray-pmd-cost"),
		Trips:   built("pmd-plain", "bench", "dray-pmd-trips"),
		Probe:   built("port-plain", "bench", "dray-probe"),
		Limit:   built("port-plain", "dray-limit"),
		Scripts: "dataplane/pmd/bench",
		Quick:   o.quick, Out: out, Log: log,
		Rounds: orElse(o.rounds, 0, o.quick, 5, 11),
		Time:   4 * time.Minute, Window: 400 * time.Millisecond,
	}
	if o.quick {
		b.Time, b.Window = time.Minute, 200*time.Millisecond
	}
	if o.seconds > 0 {
		b.Time = time.Duration(o.seconds * float64(time.Second))
	}
	return b.Run(ctx)
}

func vnf(ctx context.Context, o options, out, log io.Writer) (*microbench.Figures, error) {
	return microbench.VNF{
		Probe:  built("vnf-plain", "bench", "dray-vnf-probe"),
		Rounds: orElse(o.rounds, 0, o.quick, 7, 50),
		Out:    out,
	}.Run(ctx)
}

func iq(ctx context.Context, o options, out, _ io.Writer) (*microbench.Figures, error) {
	return microbench.IQ{
		Probe:  built("iq-plain", "bench", "dray-iq-probe"),
		Rounds: orElse(o.rounds, 0, o.quick, 5, 11),
		Out:    out,
	}.Run(ctx)
}
