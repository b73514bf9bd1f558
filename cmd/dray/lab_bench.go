// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/function/lab"
	"github.com/drayage/dray/internal/measure/experiment"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// divide decides which cells of a run are measured here, which in a guest of the
// lab, and which not at all. A dry run fetches no kernel and tries no KVM: it takes
// guests for emulated.
func (a *app) divide(ctx context.Context, run *report.ExperimentsRun, inv *inventory.Inventory, o benchOptions) {
	found := map[chain.VMKernel]string{}
	l := experiment.Lab{Datapath: experiment.HasDatapath(), Obstacle: func(k chain.VMKernel) string {
		why, known := found[k]
		if !known {
			accel, err := guest.TCG, lab.Programs()
			if !o.dry {
				a.progress("Looking for a lab guest with the kernel %s", k)
				accel, err = lab.Ready(ctx, k == chain.VMKernelRT)
			}
			if err != nil {
				why = "no guest of the lab: " + err.Error()
			}
			found[k], run.Emulated = why, run.Emulated || accel == guest.TCG
		}
		return why
	}}
	if o.noLab {
		l.Off = "a guest of the lab has it; leave out --no-lab"
	}
	run.Lab, run.Skipped = experiment.Divide(inv, l, experiment.Cells(run.Experiments))
	experiment.LeaveOutImages(run)
	run.LabRounds = experiment.LabRounds(run, run.Emulated)
}

// measureInLab measures what this host's kernel cannot, each kernel's cells in one
// guest, and takes the records into the run.
func (a *app) measureInLab(ctx context.Context, s *experiment.Dir) error {
	for _, kernel := range experiment.Flavours(s.Run) {
		if slices.Contains(s.Run.LabDone, kernel) {
			continue
		}
		began := time.Now()
		failed, err := a.labPart(ctx, s, kernel)
		s.Run.Took += time.Since(began)
		if err == nil && ctx.Err() != nil {
			err = errors.Join(failed, ctx.Err()) // the guest's part is gone on with
		}
		if err != nil {
			return errors.Join(err, s.Save())
		}
		if err := experiment.Merge(s, kernel, failed); err != nil {
			return err
		}
		s.Run.LabDone = append(s.Run.LabDone, kernel)
		if err := errors.Join(s.Save(), os.RemoveAll(experiment.PartDir(s.Path, kernel))); err != nil {
			return err
		}
	}
	return nil
}

// labPart has a guest measure its part of a run, into a directory within the run's.
// failed is why the guest did not end it.
func (a *app) labPart(ctx context.Context, s *experiment.Dir, kernel chain.VMKernel) (failed, err error) {
	dir := experiment.PartDir(s.Path, kernel)
	part, err := report.LoadExperimentsRun(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		part = experiment.Part(s.Run, kernel)
		begun, err := experiment.Begin(dir, part)
		if err != nil {
			return nil, err
		}
		if err := begun.Close(); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case !part.Finished.IsZero():
		return nil, nil
	}
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	stop := a.watchPart(dir, part)
	defer stop()
	var said bytes.Buffer
	r, failed := lab.Run(ctx, lab.Needs{Features: experiment.Needs(s.Run, kernel), RT: kernel == chain.VMKernelRT, Guest: true}, lab.Command{
		Argv: []string{own, "bench", "--resume", dir, "--quiet"}, OutDir: dir, Stdout: io.Discard, Stderr: &said,
		Progress: func(text string) { a.progress("Lab: %s", text) },
	})
	if failed == nil && r.Exit != exitOK {
		failed = fmt.Errorf("dray ended with status %d there: %s", r.Exit, cmp.Or(lastLine(said.String()), "it said nothing"))
	}
	return failed, nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// watchPart tells how far a guest is, until stop is called.
func (a *app) watchPart(dir string, part *report.ExperimentsRun) (stop func()) {
	all := part.Rounds * len(experiment.Cells(part.Experiments))
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Second):
				text, _ := os.ReadFile(filepath.Join(dir, report.RecordsFile)) // none: nothing is measured yet
				a.progress("  lab guest: %d of %d trials", bytes.Count(text, []byte("\n")), all)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
