// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/spec/layout"
)

func (a *app) topCommand() *cobra.Command {
	interval, samples := time.Second, -1
	cmd := &cobra.Command{
		Use:   "top [CHAIN]",
		Short: "Watch the native links of running chains: rate, latency, loss, verdict",
		Long: "Show, at every interval, what the functions report about their native ports through the broker, and whether\n" +
			"the last minute met the requirements. Nothing is sent: this is the functions' own traffic. On a terminal\n" +
			"the table is redrawn until q or Ctrl-C; otherwise, and with --json, each interval is appended.",
		Example: "  dray top\n  dray top f1-split-native --interval 5s\n  dray top --samples 3 --json",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if interval < 100*time.Millisecond {
				return usageError("--interval %v is shorter than the functions' reporting interval: give 100ms or more", interval)
			}
			w, err := a.watcher(argv)
			if err != nil {
				return err
			}
			ctx, leave, err := a.untilKey(cmd.Context(), os.Stdin)
			if err != nil {
				return err
			}
			defer leave()
			return w.Watch(ctx, interval, samples, a.drawer(interval))
		},
	}
	cmd.Flags().DurationVarP(&interval, "interval", "i", interval, "time between samples")
	cmd.Flags().IntVarP(&samples, "samples", "n", samples, "stop after this many intervals; negative: at Ctrl-C")
	return cmd
}

// screen reports whether samples replace each other on a terminal.
func (a *app) screen() bool {
	_, isTerminal := terminalWidth(a.out)
	return isTerminal && !a.json
}

// Keys that end `dray top`. In raw mode, Ctrl-C sends no signal.
const quitKeys = "qQ\x03"

// untilKey ends its context at a quit key, if a screen is drawn and in is the
// terminal of this process. leave restores the terminal.
func (a *app) untilKey(ctx context.Context, in *os.File) (until context.Context, leave func(), err error) {
	if !a.screen() || !term.IsTerminal(int(in.Fd())) || !host.InForeground(in) {
		return ctx, func() {}, nil
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, nil, fmt.Errorf("terminal: %w", err)
	}
	until, quit := context.WithCancel(ctx)
	go func() {
		defer quit()
		key := make([]byte, 1)
		for {
			if n, err := in.Read(key); err != nil || n == 1 && bytes.Contains([]byte(quitKeys), key) {
				return
			}
		}
	}()
	return until, func() {
		quit()
		_ = term.Restore(int(in.Fd()), before) // it may be gone by now
	}, nil
}

// drawer shows samples, one by one.
func (a *app) drawer(interval time.Duration) func([]live.Link) error {
	first := true
	return func(links []live.Link) error {
		if a.json {
			return a.printLine(schemaSample, live.Sample{Time: time.Now(), Links: links})
		}
		var page bytes.Buffer
		fmt.Fprintf(&page, "%s, every %v\n\n", time.Now().Format(time.TimeOnly), interval)
		if err := live.Text(&page, links, a.width()); err != nil {
			return err
		}
		if first && !a.screen() {
			first = false // two samples are needed for a difference
			return nil
		}
		return a.drawPage(page.Bytes())
	}
}

// drawPage draws a page over the last one on a terminal, and else below it.
func (a *app) drawPage(page []byte) error {
	page = []byte(layout.PlainLines(string(page)))
	if a.screen() {
		a.drawScreen(page)
		return nil
	}
	_, err := fmt.Fprintf(a.out, "%s\n", page)
	return err
}

// drawScreen draws a page over the last one, cut to the terminal's size.
func (a *app) drawScreen(page []byte) {
	width, height := 80, 24
	if f, ok := a.out.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil {
			width, height = w, h
		}
	}
	fmt.Fprint(a.out, "\x1b[H")
	for i, line := range bytes.Split(page, []byte("\n")) {
		if i == height-1 {
			break
		}
		text := cut(string(line), width)
		if a.color.on(a.out) {
			text = paint(text)
		}
		fmt.Fprintf(a.out, "%s\x1b[K\r\n", text)
	}
	fmt.Fprint(a.out, "\x1b[J")
}
