// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/capture"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/spec/chain"
)

// waitsSilently is how long opening a port may take without a message.
const waitsSilently = time.Second

// captureFlags are the options of `dray capture`.
type captureFlags struct {
	file     string
	snaplen  int
	count    uint64
	duration time.Duration
}

// snaplenMax is tcpdump's largest capture length.
const snaplenMax = 262144

func (a *app) captureCommand() *cobra.Command {
	var f captureFlags
	cmd := &cobra.Command{
		Use:   "capture CHAIN FUNCTION.PORT",
		Short: "Write the packets that pass a port as pcapng, for tcpdump or Wireshark",
		Long: "Write the packets that pass a port, in both directions, as pcapng to a file or a pipe, until Ctrl-C. tcpdump\n" +
			"cannot see the packets of a native port: there the function itself copies them, as soon as a process opens the\n" +
			"port. For any other port the kernel copies them. Traffic never waits for the capture: packets that do not fit\n" +
			"the capture buffer are counted, and appear in the file as interface drops.",
		Example: "  dray capture f1-split du.f1u | tcpdump -n -r -\n  dray capture f1-split du.f1u -w f1u.pcapng --duration 10s",
		Args:    args(cobra.ExactArgs(2)),
		RunE:    func(cmd *cobra.Command, argv []string) error { return a.capture(cmd.Context(), argv[0], argv[1], f) },
	}
	f.add(cmd)
	return cmd
}

func (f *captureFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.file, "write", "w", "-", "file to write to; -: standard output")
	cmd.Flags().IntVarP(&f.snaplen, "snaplen", "s", 0, "bytes to keep of each packet; 0: all, but of a message only as many as the largest packet has")
	cmd.Flags().Uint64VarP(&f.count, "count", "c", 0, "stop after this many packets; 0: never")
	cmd.Flags().DurationVarP(&f.duration, "duration", "d", 0, "stop after this time; 0: never")
}

// check rejects nonsensical flags.
func (f captureFlags) check(a *app) error {
	out, isFile := a.out.(*os.File)
	switch {
	case f.snaplen < 0 || f.snaplen > snaplenMax:
		return usageError("--snaplen %d: give 0 to %d bytes", f.snaplen, snaplenMax)
	case f.duration < 0:
		return usageError("--duration %v: it must not be negative", f.duration)
	case f.file != "-":
		return nil
	case a.json:
		return usageError("--json and the packets cannot share standard output: name a file with --write")
	case isFile && term.IsTerminal(int(out.Fd())):
		return usageError("standard output is a terminal: append `| tcpdump -n -r -`, or name a file with --write")
	}
	return nil
}

// capturedPort is a port to capture, and its function.
type capturedPort struct {
	live     *node.Live
	function string
	port     *chain.Port
}

func (a *app) findPort(chainName, name string) (*capturedPort, error) {
	live, err := a.open(chainName)
	if err != nil {
		return nil, err
	}
	var all []string
	for i := range live.Chain.Functions {
		f := &live.Chain.Functions[i]
		for j := range f.Ports {
			p := &f.Ports[j]
			if f.Name+"."+p.Name == name {
				return &capturedPort{live, f.Name, p}, nil
			}
			all = append(all, f.Name+"."+p.Name)
		}
	}
	return nil, fmt.Errorf("chain %s has no port %q; it has %s", chainName, name, strings.Join(all, ", "))
}

func (a *app) capture(ctx context.Context, chainName, name string, f captureFlags) error {
	if err := f.check(a); err != nil {
		return err
	}
	port, err := a.findPort(chainName, name)
	if err != nil {
		return err
	}
	waits := time.AfterFunc(waitsSilently, func() { a.progress("Waiting until a process opens port %s", name) })
	source, err := port.openWithin(ctx, f.duration, f.snaplen)
	waits.Stop()
	if err != nil {
		return err
	}
	defer source.close()
	out, closeOut, err := a.captureFile(f.file)
	if err != nil {
		return err
	}
	w, err := capture.NewWriter(out, "dray "+version, capture.Interface{
		Name: port.port.Name, Description: fmt.Sprintf("port %s of chain %s", name, chainName), Snaplen: source.snaplen,
	})
	if err != nil {
		return errors.Join(err, closeOut())
	}
	a.progress("Capturing at %s, up to %d bytes of a packet", name, source.snaplen)
	result, err := capture.Run(ctx, source, w, capture.Limits{Packets: f.count, Duration: f.duration})
	if err := errors.Join(err, closeOut()); err != nil {
		return fmt.Errorf("capture %s: %w", name, err)
	}
	return a.printCapture(result.Summary(source.reason()))
}

// captureFile opens the output. Other users cannot read a capture.
func (a *app) captureFile(name string) (io.Writer, func() error, error) {
	if name == "-" {
		return a.out, func() error { return nil }, nil
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	return file, file.Close, nil
}

func (a *app) printCapture(s capture.Summary) error {
	if a.json {
		return a.printJSON(schemaCapture, s)
	}
	text := fmt.Sprintf("%d packets captured, %d dropped because the capture buffer was full, in %v", s.Packets, s.Dropped, s.End.Sub(s.Start).Round(time.Millisecond))
	if s.Malformed > 0 {
		text += fmt.Sprintf("; %d malformed records from the function were left out", s.Malformed)
	}
	if s.Because != "" {
		text += ": " + s.Because
	}
	a.progress("%s", text)
	return nil
}

// captureSource is a source with details from its opening.
type captureSource struct {
	capture.Source
	snaplen int
	reason  func() string // why it ended by itself; "" if it did not
	close   func() error
}

// openWithin is open that gives up after a time, if it is not 0: then there is nothing to
// capture.
func (p *capturedPort) openWithin(ctx context.Context, most time.Duration, snaplen int) (*captureSource, error) {
	opening := ctx
	if most > 0 {
		var cancel context.CancelFunc
		opening, cancel = context.WithTimeout(ctx, most)
		defer cancel()
	}
	source, err := p.open(opening, snaplen)
	if err == nil || opening.Err() == nil || ctx.Err() != nil || !p.brokered() {
		return source, err
	}
	client, err := broker.Dial(p.live.BrokerDir())
	if err != nil {
		return nil, err
	}
	links, err := client.Status(ctx)
	if err != nil {
		return nil, err
	}
	why := unopened(links, p.function, p.port.Name, most)
	return &captureSource{Source: capture.Nothing{}, snaplen: snaplenMax, reason: func() string { return why }, close: func() error { return nil }}, nil
}

// unopened is why the capture of a port has not begun within a time.
func unopened(links []broker.LinkStatus, function, port string, most time.Duration) string {
	for _, l := range links {
		for _, e := range l.Ends {
			if e.Function == function && e.Port == port && e.Connected {
				return fmt.Sprintf("the process that has port %s.%s open did not answer within %v", function, port, most)
			}
		}
	}
	return fmt.Sprintf("no process opened port %s.%s within %v", function, port, most)
}

// open captures in the function's libdray if that opens the port, else at its netdev.
func (p *capturedPort) open(ctx context.Context, snaplen int) (*captureSource, error) {
	switch {
	case p.brokered():
		return p.openNative(ctx, snaplen)
	case p.port.Face == chain.FaceDPDK:
		return nil, fmt.Errorf("port %s of %s is a device of the function's own DPDK, so only the function sees its packets: use a transport with net_dray, such as shm", p.port.Name, p.function)
	}
	if snaplen == 0 {
		snaplen = snaplenMax
	}
	sandbox := p.live.State.Sandboxes[p.function]
	if sandbox == nil {
		return nil, fmt.Errorf("function %s has no sandbox: its chain is still being made, or is damaged", p.function)
	}
	d, err := capture.OpenNetdev(sandbox.Netns, p.port.Name, snaplen, nil)
	if err != nil {
		return nil, err
	}
	return &captureSource{Source: d, snaplen: snaplen, reason: d.Reason, close: d.Close}, nil
}

// brokered reports whether libdray opens the port.
func (p *capturedPort) brokered() bool {
	for _, l := range p.live.State.Plan.Links {
		for _, e := range l.Ends {
			if e.Function == p.function && e.Port == p.port.Name {
				return e.Brokered()
			}
		}
	}
	return false
}

func (p *capturedPort) openNative(ctx context.Context, snaplen int) (*captureSource, error) {
	client, err := broker.Dial(p.live.BrokerDir())
	if err != nil {
		return nil, err
	}
	n, err := capture.OpenNative(ctx, client, "", p.function, p.port.Name, snaplen)
	if err != nil {
		return nil, err
	}
	return &captureSource{Source: n, snaplen: n.Snaplen(), reason: n.Reason, close: n.Close}, nil
}
