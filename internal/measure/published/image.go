// SPDX-License-Identifier: Apache-2.0

package published

import (
	"bytes"
	"context"
	"fmt"
	"path"
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

// imageTime is roughly how long a function in an image takes to come up, try its
// program, and go down.
const imageTime = 1500 * time.Millisecond

// quickImages are the images of the quick profile: the others take longer.
var quickImages = []string{"debian", "iperf"}

// once reports whether a cell is measured only in the first round. An image is built
// once, and repeated figures would look like more trials. An emulated machine takes
// half a minute until its DPDK application runs, and decides no claim.
func once(run *report.ExperimentsRun, c experiment.Cell) bool {
	emulated := run.Emulated && run.Profile == Quick
	return c.Tool == experiment.ToolImage || emulated && c.Runtime == chain.RuntimeVM && c.Face == chain.FaceDPDK
}

// imageObstacle is why an image cannot be built or found here; empty: it can.
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

// LeaveOutImages makes a quick run skip the images that it has no time to build.
func LeaveOutImages(run *report.ExperimentsRun) {
	if run.Profile != Quick {
		return
	}
	for _, c := range toBuild(run) {
		if slices.Contains(quickImages, c.Image) {
			continue
		}
		run.Skipped[c.String()] = fmt.Sprintf("the profile quick does not build it: use --profile paper, or build it with dray image %s", c.Image)
	}
}

// toBuild are the cells of a run whose images do not exist yet.
func toBuild(run *report.ExperimentsRun) []experiment.Cell {
	return slices.DeleteFunc(here(run), func(c experiment.Cell) bool {
		if c.Tool != experiment.ToolImage {
			return true
		}
		r, err := image.Find(c.Image)
		return err != nil || image.Current(r) != nil
	})
}

// buildEstimate is roughly how long a run's missing images take to build.
func buildEstimate(run *report.ExperimentsRun) (sum time.Duration) {
	for _, c := range toBuild(run) {
		if r, err := image.Find(c.Image); err == nil {
			sum += r.Takes
		}
	}
	return sum
}

// buildPatience is how long a build may wait for another one, or for the mirror, in
// addition to ten times its usual duration.
const buildPatience = time.Minute

// prepareImages builds missing images before any measurement that a build would
// disturb. Cells of images that cannot be built are skipped.
func (r *Runner) prepareImages(ctx context.Context) {
	for _, c := range toBuild(r.Run) {
		if image.Ready(c.Image) != nil { // functions may run in it
			r.Run.Skipped[c.String()] = "the image is from another recipe or program version: take down the chains that run in it, then dray image " + c.Image
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

// say reports events outside cells.
func (r *Runner) say(text string) {
	if r.Progress != nil {
		r.Progress(runner.Progress{Item: runner.Item{Title: text}, Left: Estimate(r.Run), AtMost: r.Run.AtMost})
	}
}

func imageText(_ *inventory.Inventory, c experiment.Cell) string {
	return fmt.Sprintf("functions:\n  - {name: %s, runtime: %s, memory: 512Mi, rootfs: %q}\n", client, c.Runtime, image.Rootfs(c.Image))
}

// built runs an image's program in a function over it. That the function came up
// proves that the image exists.
func built(ctx context.Context, _ *Runner, live *node.Live, c experiment.Cell) (record.Trial, error) {
	t := record.Trial{Quantity: record.QImage, Start: time.Now(), Marks: []string{}, Runtimes: map[string]string{client: string(c.Runtime)}}
	recipe, err := image.Find(c.Image)
	if err != nil {
		return t, err
	}
	i := image.Current(recipe)
	if i == nil {
		return t, fmt.Errorf("the image %s is gone, or is from another recipe", c.Image)
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

// builtImages are the images with the programs that tools run, built from sources that the user names.
var builtImages = map[experiment.Tool]string{experiment.ToolRAN: ranImage, experiment.ToolFronthaul: fronthaulImage}

// notBuilt is why an image's programs cannot be run here; empty: they can.
func notBuilt(name string) string {
	r, err := image.Find(name)
	if err != nil {
		return err.Error()
	}
	build := fmt.Sprintf(": %s=FOLDER dray image %s builds it from the sources of %s", r.Source.Variable, name, path.Base(r.Source.Repository))
	switch {
	case image.Ready(name) == nil:
		return "no image " + name + build
	case image.Current(r) == nil:
		return "the image " + name + " is from another recipe or program version" + build
	}
	return ""
}
