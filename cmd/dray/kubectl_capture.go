// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/cluster"
)

func (a *app) clusterCaptureCommand(k *cluster.Kubectl) *cobra.Command {
	var f captureFlags
	cmd := &cobra.Command{
		Use:   "capture CHAIN FUNCTION.PORT",
		Short: "Write the packets that pass a port as pcapng, for tcpdump or Wireshark",
		Long: "Write the packets that pass a native or dpdk port, in both directions, as pcapng to a file or a pipe, until\n" +
			"Ctrl-C. The application itself copies them, as soon as it opens the port, and traffic never waits for that:\n" +
			"packets that do not fit the capture buffer are counted, and appear in the file as interface drops. This runs a\n" +
			"program in a pod of dray-node, so it takes the right to create pods/exec in its namespace.",
		Example: "  kubectl dray capture f1 du.f1u -n f1-split | tcpdump -n -r -\n  kubectl dray capture f1 du.f1u -w f1u.pcapng --duration 10s",
		Args:    args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return a.captureCluster(cmd.Context(), k, argv[0], argv[1], f)
		},
	}
	f.add(cmd)
	return cmd
}

func (a *app) captureCluster(ctx context.Context, k *cluster.Kubectl, chain, port string, f captureFlags) error {
	if err := f.check(a); err != nil {
		return err
	}
	c, err := k.Chain(ctx, chain)
	if err != nil {
		return err
	}
	link, end, err := endOf(c, port)
	if err != nil {
		return err
	}
	out, closeOut, err := a.captureFile(f.file)
	if err != nil {
		return err
	}
	first := &firstWrite{Writer: out, then: func() { a.progress("Capturing at %s in pod %s on node %s", port, end.Pod, end.Node) }}
	waits := time.AfterFunc(3*waitsSilently, func() {
		first.before(func() { a.progress("Waiting until a process opens port %s", port) })
	})
	defer waits.Stop()
	o := cluster.CaptureOptions{Snaplen: f.snaplen, Count: f.count, Duration: f.duration}
	summary, err := k.Capture(ctx, c, link, end, o, first)
	if err := errors.Join(err, closeOut()); err != nil {
		return fmt.Errorf("capture %s: %w", port, err)
	}
	return a.printCapture(*summary)
}

// endOf is the end of a link that a pod has, and the link.
func endOf(c *cluster.Chain, port string) (link string, end cluster.End, err error) {
	var all []string
	for _, l := range c.Status.Links {
		for _, e := range l.Ends {
			if e.Name() != port {
				all = append(all, e.Name())
				continue
			}
			if e.Pod == "" || e.Node == "" {
				return "", e, fmt.Errorf("no pod has port %s", port)
			}
			return l.Name, e, nil
		}
	}
	if len(all) == 0 {
		return "", end, fmt.Errorf("chain %s has no links yet; look at `kubectl dray status`", c.Name())
	}
	return "", end, fmt.Errorf("chain %s has no port %q; it has %s", c.Name(), port, strings.Join(all, ", "))
}

// firstWrite notes when something is written first.
type firstWrite struct {
	io.Writer
	then func()

	mu      sync.Mutex
	written bool
}

func (w *firstWrite) Write(p []byte) (int, error) {
	w.mu.Lock()
	begins := !w.written
	w.written = true
	w.mu.Unlock()
	if begins {
		w.then()
	}
	return w.Writer.Write(p)
}

// before calls f unless something has been written.
func (w *firstWrite) before(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.written {
		f()
	}
}
