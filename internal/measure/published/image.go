// SPDX-License-Identifier: Apache-2.0

package published

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/function/image"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/measure/runner"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

// imageTime is about how long a function in an image takes to come up, try its
// program, and go.
const imageTime = 1500 * time.Millisecond

// quickImages are those that the profile quick builds: the others take longer.
var quickImages = []string{"debian", "iperf"}

// once reports whether a cell is measured in the first round alone: an image is built
// once, and the same figures again would pass for more trials. An emulated machine
// takes half a minute until its DPDK application runs, and decides no claim.
func once(run *report.ExperimentsRun, c experiment.Cell) bool {
	emulated := run.Emulated && run.Profile == Quick
	return c.Tool == experiment.ToolImage || emulated && c.Runtime == chain.RuntimeVM && c.Face == chain.FaceDPDK
}

// imageObstacle is why an image cannot be built, or found, here; empty: it can.
func imageObstacle(c experiment.Cell) string {
	r, err := image.Find(c.Image)
	if err != nil {
		return err.Error()
	}
	if image.Current(r) != nil {
		return ""
	}
	if err := image.Missing(); err != nil {
		return err.Error()
	}
	return ""
}

// LeaveOutImages has a run of the profile quick skip the images that it has no time
// to build.
func LeaveOutImages(run *report.ExperimentsRun) {
	if run.Profile != Quick {
		return
	}
	for _, c := range toBuild(run) {
		if slices.Contains(quickImages, c.Image) {
			continue
		}
		run.Skipped[c.String()] = fmt.Sprintf("the profile quick has no time to build it: --profile paper builds it, and so does dray image %s", c.Image)
	}
}

// toBuild are the cells of a run whose images are not there yet.
func toBuild(run *report.ExperimentsRun) []experiment.Cell {
	return slices.DeleteFunc(here(run), func(c experiment.Cell) bool {
		if c.Tool != experiment.ToolImage {
			return true
		}
		r, err := image.Find(c.Image)
		return err != nil || image.Current(r) != nil
	})
}

// buildEstimate is about how long the images of a run take that are not built yet.
func buildEstimate(run *report.ExperimentsRun) (sum time.Duration) {
	for _, c := range toBuild(run) {
		if r, err := image.Find(c.Image); err == nil {
			sum += r.Takes
		}
	}
	return sum
}

// buildPatience is for how long a build may wait for another one, or for the mirror,
// beside ten times what it takes.
const buildPatience = time.Minute

// prepareImages builds the images that are not there yet, before anything is
// measured that a build would disturb. The cells of one that cannot be built are
// skipped.
func (r *Runner) prepareImages(ctx context.Context) {
	for _, c := range toBuild(r.Run) {
		if image.Ready(c.Image) != nil { // functions may run in it
			r.Run.Skipped[c.String()] = "the image is of another recipe or program: take down the chains that run in it, then dray image " + c.Image
			continue
		}
		recipe, err := image.Find(c.Image)
		if err == nil {
			bounded, cancel := context.WithTimeout(ctx, buildPatience+10*recipe.Takes)
			_, err = image.Build(bounded, recipe, false, r.say)
			cancel()
		}
		if err != nil && ctx.Err() == nil {
			r.Run.Skipped[c.String()] = err.Error()
		}
	}
}

// say reports what happens outside cells.
func (r *Runner) say(text string) {
	if r.Progress != nil {
		r.Progress(runner.Progress{Item: runner.Item{Title: text}, Left: Estimate(r.Run)})
	}
}

func imageText(_ *inventory.Inventory, c experiment.Cell) string {
	return fmt.Sprintf("functions:\n  - {name: %s, runtime: %s, memory: 512Mi, rootfs: %q}\n", client, c.Runtime, image.Rootfs(c.Image))
}

// built runs the program of an image in a function over it. That the function could
// come up says that the image is there.
func built(ctx context.Context, _ *Runner, live *node.Live, c experiment.Cell) (record.Trial, error) {
	t := record.Trial{Quantity: record.QImage, Start: time.Now(), Marks: []string{}, Runtimes: map[string]string{client: string(c.Runtime)}}
	recipe, err := image.Find(c.Image)
	if err != nil {
		return t, err
	}
	i := image.Current(recipe)
	if i == nil {
		return t, fmt.Errorf("the image %s has gone, or is of another recipe", c.Image)
	}
	stop, err := supervise(ctx, live)
	if err != nil {
		return t, err
	}
	defer stop()
	var out bytes.Buffer
	code, err := live.Exec(ctx, client, recipe.Try, runtime.Stdio{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
	if err != nil {
		return t, err
	}
	t.Duration = time.Since(t.Start)
	t.Raw = fmt.Sprintf("image %s of Debian %s, made %s in %v, %d bytes\n$ %s\n%sexit status %d\n",
		i.Name, i.Suite, i.Built.UTC().Format(time.RFC3339), i.Took, i.Size, strings.Join(recipe.Try, " "), out.String(), code)
	runs := 0.0
	if code == 0 && strings.Contains(out.String(), recipe.Shows) {
		runs = 1
	}
	t.Experiment = &record.Experiment{Values: map[string]float64{
		"runs": runs, "disk": float64(i.Size) / mega, "build_time": i.Took.Seconds(),
	}}
	return t, nil
}
