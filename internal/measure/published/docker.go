// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/matrix"
)

// imagePrefix precedes a recipe's name in the name of its image in Docker.
const imagePrefix = "dray-"

// The recipes of the images in which Docker containers run.
const (
	baseImage = "debian" // sh and perl; instruments need nothing of the image
	ownImage  = "vnf"    // for functions whose command is a program of Drayage's
)

// dockerRecipe is the recipe of the image of a cell's functions; empty if they are not
// Docker containers.
func dockerRecipe(c experiment.Cell) string {
	forwards := c.VNF != "" && c.VNF != matrix.VNFDirect
	switch {
	case c.Runtime != chain.RuntimeDocker:
		return ""
	case forwards || c.Tool == experiment.ToolRecovery && c.Transport != "":
		return ownImage
	case c.Tool == experiment.ToolRAN:
		return ranImage
	}
	return baseImage
}

// dockerImage is the name of that image.
func dockerImage(c experiment.Cell) string {
	if recipe := dockerRecipe(c); recipe != "" {
		return imagePrefix + recipe
	}
	return ""
}

// imageField is that image, as a field of a function.
func imageField(c experiment.Cell) string {
	if image := dockerImage(c); image != "" {
		return ", image: " + image
	}
	return ""
}

// dockerExtra is how much longer a cell takes in Docker containers.
func dockerExtra(c experiment.Cell) time.Duration {
	const ends = 2
	if c.Runtime != chain.RuntimeDocker {
		return 0
	}
	return dockerWait * time.Duration(max(ends, c.Functions))
}

// memoryElsewhere is why the chain's control group does not count a running function's
// memory; empty: it does.
func memoryElsewhere(ctx context.Context, live *node.Live, function string, c experiment.Cell) (string, error) {
	if c.Runtime != chain.RuntimeDocker {
		return "", nil
	}
	process, err := processOf(ctx, live, function)
	if err != nil {
		return "", err
	}
	at, err := host.CgroupOf(process.PID)
	if err != nil || strings.HasPrefix(at.Path, live.Cgroup().Path+"/") {
		return "", err
	}
	return "Docker puts its containers into control groups of systemd's: start dockerd with --exec-opt native.cgroupdriver=cgroupfs", nil
}

// imageLook bounds how long an engine may take to list its images.
const imageLook = 20 * time.Second

// findImages skips the cells whose image the engine lacks: the user decides what
// his engine stores.
func (r *Runner) findImages(ctx context.Context) {
	for _, c := range Cells(r.Run.Experiments) {
		image := dockerImage(c)
		skipped := r.Run.Skipped[c.String()]
		looked := strings.HasPrefix(skipped, noImage(image)) // when the run began: the user may have imported it since
		if image == "" || r.Run.Lab[c.String()] != "" || skipped != "" && !looked {
			continue
		}
		keeper := r.imageKeeper(c.Runtime)
		if keeper == nil {
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, imageLook)
		has, err := keeper.HasImage(bounded, image)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.Run.Skipped[c.String()] = err.Error()
		case !has:
			r.Run.Skipped[c.String()] = fmt.Sprintf("%s: dray image %s --tar %[2]s.tar && docker import %[2]s.tar %[3]s", noImage(image), dockerRecipe(c), image)
		default:
			delete(r.Run.Skipped, c.String())
		}
	}
}

// imageKeeper is the runtime of that name if it keeps images, otherwise nil.
func (r *Runner) imageKeeper(name chain.RuntimeName) runtime.ImageKeeper {
	for _, rt := range r.Node.Runtimes {
		if keeper, ok := rt.(runtime.ImageKeeper); ok && rt.Name() == name {
			return keeper
		}
	}
	return nil
}

// noImage is what an engine lacks that does not have an image.
func noImage(image string) string { return "docker has no image " + image }
