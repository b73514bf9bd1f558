// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/capture"
	"github.com/drayage/dray/internal/spec/manifest"
	"github.com/drayage/dray/internal/spec/release"
	"github.com/drayage/dray/kube/internal/layout"
)

// captureUsage is for people who look into the pod; `kubectl dray capture` is the command for users.
const captureUsage = `usage: dray-node capture [OPTION...] LINK FUNCTION PORT
Write the packets of a native or dpdk port of this node to standard output, as pcapng, until standard input ends.
LINK is NAMESPACE/CHAIN/LINK. The last line on standard error is a summary in JSON.
`

// runCapture is `dray-node capture`.
func runCapture(args []string) error {
	flags := flag.NewFlagSet(manifest.CaptureVerb, flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), captureUsage); flags.PrintDefaults() }
	state := flags.String("state", layout.State, "`directory` of this node's broker")
	snaplen := flags.Int("snaplen", 0, "`bytes` to keep of each packet; 0: all")
	var limits capture.Limits
	flags.Uint64Var(&limits.Packets, "count", 0, "stop after this `number` of packets; 0: never")
	flags.DurationVar(&limits.Duration, "duration", 0, "stop after this `time`; 0: never")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if flags.NArg() != 3 {
		return errors.New("capture: give LINK, FUNCTION and PORT; see dray-node capture --help")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the capture ends when its reader has gone
		cancel()
	}()
	return captureTo(ctx, os.Stdout, layout.Broker(*state), flags.Arg(0), flags.Arg(1), flags.Arg(2), *snaplen, limits)
}

// captureTo writes a capture, and its summary to standard error.
func captureTo(ctx context.Context, out io.Writer, dir, link, function, port string, snaplen int, limits capture.Limits) error {
	client, err := broker.Dial(dir)
	if err != nil {
		return err
	}
	source, err := capture.OpenNative(ctx, client, link, function, port, snaplen)
	if errors.Is(err, context.Canceled) { // while it waited for a process to open the port
		now := time.Now()
		return json.NewEncoder(os.Stderr).Encode(capture.Summary{Start: now, End: now})
	}
	if err != nil {
		return fmt.Errorf("%w (the packets of an interface are captured in its pod, for example by kubectl debug with tcpdump)", err)
	}
	defer source.Close()
	w, err := capture.NewWriter(out, release.Text("dray-node"), capture.Interface{
		Name: port, Description: fmt.Sprintf("port %s.%s of link %s", function, port, link), Snaplen: source.Snaplen(),
	})
	if err == nil {
		err = w.Flush() // the reader sees that the capture has begun
	}
	if err != nil {
		return err
	}
	result, err := capture.Run(ctx, source, w, limits)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stderr).Encode(result.Summary(source.Reason()))
}
