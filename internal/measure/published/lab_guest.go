// SPDX-License-Identifier: Apache-2.0

package published

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
	"time"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/function/lab"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// LabUse is how a run uses the lab.
type LabUse struct {
	Off bool // nothing is measured there
	Dry bool // fetch no kernel, try no KVM: guests count as emulated
	Say func(format string, args ...any)
}

// Assign decides which of a run's cells are measured here, which in a lab guest,
// and which not at all.
func Assign(ctx context.Context, run *report.ExperimentsRun, inv *inventory.Inventory, use LabUse) {
	found := map[chain.VMKernel]string{}
	l := Lab{Datapath: HasDatapath(), Obstacle: func(k chain.VMKernel) string {
		why, known := found[k]
		if !known {
			accel, err := guest.TCG, lab.Programs()
			if !use.Dry {
				use.Say("Looking for a lab guest with the kernel %s", k)
				accel, err = lab.Ready(ctx, guest.Flavour(k))
			}
			if err != nil {
				why = "no lab guest: " + err.Error()
			}
			found[k], run.Emulated = why, run.Emulated || accel == guest.TCG
		}
		return why
	}}
	if use.Off {
		l.Off = "a lab guest has it; leave out --no-lab"
	}
	run.Lab, run.Skipped = Divide(inv, l, Cells(run.Experiments))
	LeaveOutImages(run)
	run.LabRounds = LabRounds(run, run.Emulated)
}

// MeasureInLab measures the cells that need another kernel, one guest for each
// kernel, and adds their records to the run.
func MeasureInLab(ctx context.Context, s *Dir, say func(format string, args ...any)) error {
	for _, kernel := range Flavours(s.Run) {
		if slices.Contains(s.Run.LabDone, kernel) {
			continue
		}
		began := time.Now()
		failed, err := labPart(ctx, s, kernel, say)
		s.Run.Took += time.Since(began)
		if err == nil && ctx.Err() != nil {
			err = errors.Join(failed, ctx.Err()) // a resumed run continues the guest's part
		}
		if err != nil {
			return errors.Join(err, s.Save())
		}
		if err := Merge(s, kernel, failed); err != nil {
			return err
		}
		s.Run.LabDone = append(s.Run.LabDone, kernel)
		if err := errors.Join(s.Save(), os.RemoveAll(PartDir(s.Path, kernel))); err != nil {
			return err
		}
	}
	return nil
}

// labPart makes a guest measure its part of a run, into a directory inside the
// run's. failed is why the guest did not finish.
func labPart(ctx context.Context, s *Dir, kernel chain.VMKernel, say func(string, ...any)) (failed, err error) {
	dir := PartDir(s.Path, kernel)
	part, err := report.LoadExperimentsRun(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		part = Part(s.Run, kernel)
		begun, err := Begin(dir, part)
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
	stop := watchPart(dir, part, say)
	defer stop()
	var said bytes.Buffer
	r, failed := lab.Run(ctx, lab.Needs{Features: Needs(s.Run, kernel), Kernel: guest.Flavour(kernel), Guest: true}, lab.Command{
		Argv: []string{own, "bench", "--resume", dir, "--quiet"}, OutDir: dir, Stdout: io.Discard, Stderr: &said,
		Progress: func(text string) { say("Lab: %s", text) },
	})
	if failed == nil && r.Exit != 0 {
		failed = fmt.Errorf("dray ended with status %d there: %s", r.Exit, cmp.Or(host.LastLines(said.String()), "it printed nothing"))
	}
	return failed, nil
}

// watchPart reports a guest's progress until stop is called.
func watchPart(dir string, part *report.ExperimentsRun, say func(string, ...any)) (stop func()) {
	all := part.Rounds * len(Cells(part.Experiments))
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Second):
				text, _ := os.ReadFile(filepath.Join(dir, report.RecordsFile)) // none: nothing measured yet
				say("  lab guest: %d of %d trials", bytes.Count(text, []byte("\n")), all)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
