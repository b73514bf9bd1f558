// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/drayage/dray/internal/measure/live"
)

func (a *app) topCommand() *cobra.Command {
	interval, samples := time.Second, -1
	cmd := &cobra.Command{
		Use:   "top [CHAIN]",
		Short: "Watch the native links of running chains: rate, latency, loss, verdict",
		Long: "Show what the functions report of their native ports, through the broker, every interval, and how the\n" +
			"requirements stand over the last minute. Nothing is sent: this is the functions' own traffic. On a terminal\n" +
			"the table is drawn again until Ctrl-C; elsewhere, and with --json, each interval is added.",
		Example: "  dray top\n  dray top f1-split-native --interval 5s\n  dray top --samples 3 --json",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if interval < 100*time.Millisecond {
				return usageError("an interval of %v is shorter than functions report: take 100ms or more", interval)
			}
			w, err := a.watcher(argv)
			if err != nil {
				return err
			}
			return w.Watch(cmd.Context(), interval, samples, a.drawer(interval))
		},
	}
	cmd.Flags().DurationVarP(&interval, "interval", "i", interval, "time between samples")
	cmd.Flags().IntVarP(&samples, "samples", "n", samples, "end after that many intervals; below 0: at Ctrl-C")
	return cmd
}

// drawer shows one sample after another.
func (a *app) drawer(interval time.Duration) func([]live.Link) error {
	f, ok := a.out.(*os.File)
	screen := ok && !a.json && term.IsTerminal(int(f.Fd()))
	first := true
	return func(links []live.Link) error {
		if a.json {
			return json.NewEncoder(a.out).Encode(map[string]any{"time": time.Now(), "links": links})
		}
		var page bytes.Buffer
		fmt.Fprintf(&page, "%s, every %v\n\n", time.Now().Format(time.TimeOnly), interval)
		if err := live.Text(&page, links); err != nil {
			return err
		}
		switch {
		case screen:
			drawScreen(a, f, page.Bytes())
		case first:
			first = false // nothing has passed between two samples yet
		default:
			fmt.Fprintf(a.out, "%s\n", page.Bytes())
		}
		return nil
	}
}

// drawScreen puts a page over the one before, cut to the terminal's size.
func drawScreen(a *app, f *os.File, page []byte) {
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width, height = 80, 24
	}
	fmt.Fprint(a.out, "\x1b[H")
	for i, line := range bytes.Split(page, []byte("\n")) {
		if i == height-1 {
			break
		}
		fmt.Fprintf(a.out, "%s\x1b[K\r\n", cut(string(line), width))
	}
	fmt.Fprint(a.out, "\x1b[J")
}
