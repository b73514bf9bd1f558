// SPDX-License-Identifier: Apache-2.0

package chainrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/node"
)

// startFunctions starts every command, waits until all have settled, stops them,
// and stores their output.
func (r *Run) startFunctions(ctx context.Context, live *node.Live) error {
	return r.supervised(ctx, live, nil, func(failed error) error {
		functions, _, err := live.Status()
		if err == nil {
			r.Functions = functions
		}
		return errors.Join(failed, err)
	})
}

// supervised starts the commands of all functions but some, and calls while once they have
// settled, with the error of those that failed. Then it stops them, and stores their output.
func (r *Run) supervised(ctx context.Context, live *node.Live, except []string, while func(failed error) error) error {
	s, err := live.Supervise(except...)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(running) }()
	failed := s.Settled(ctx, node.Settle)
	if failed != nil {
		failed = live.WithLogs(failed)
	}
	err = while(failed)
	stop()
	if hung := <-stopped; hung != nil { // if it still does, the chain's removal fails
		r.Warn(hung)
	}
	if lost := r.keepLogs(live); lost != nil {
		r.Warn(fmt.Errorf("the logs of the functions are not kept: %w", lost))
	}
	return err
}

// keepLogs copies the functions' logs into the run directory.
func (r *Run) keepLogs(live *node.Live) error {
	for _, f := range live.Chain.Functions {
		if err := copyFile(live.LogFile(f.Name), filepath.Join(r.Path, "log", f.Name+".log")); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file if it exists.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Summary is one clause: the amount of work.
func (j Job) Summary() string {
	var transports []string
	for _, l := range j.Plan.Links {
		transports = append(transports, l.Transport)
	}
	slices.Sort(transports)
	return fmt.Sprintf("%s, %s over %s", count(len(j.Chain.Functions), "function"), count(len(j.Chain.Links), "link"),
		strings.Join(slices.Compact(transports), ", "))
}

// count is "1 link", "2 links".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
