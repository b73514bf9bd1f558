// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
)

// checksImage is the Docker image in which checks are tried: Drayage's own Debian
// base, which has perl.
const checksImage = "dray-debian"

// checksImageOf is the image line of a function in the checks chain.
func checksImageOf(rt chain.RuntimeName) string {
	if rt == chain.RuntimeDocker {
		return ", image: " + checksImage
	}
	return ""
}

// imageLook bounds how long an engine may take to list its images.
const imageLook = 20 * time.Second

// findImages skips the cells whose image the engine lacks: the user decides what
// his engine stores.
func (r *Runner) findImages(ctx context.Context) {
	for _, c := range Cells(r.Run.Experiments) {
		skipped := r.Run.Skipped[c.String()]
		looked := strings.Contains(skipped, checksImage) // when the run began: the user may have imported it since
		if c.Tool != experiment.ToolChecks || r.Run.Lab[c.String()] != "" || skipped != "" && !looked {
			continue
		}
		for _, rt := range r.Node.Runtimes {
			keeper, ok := rt.(runtime.ImageKeeper)
			if !ok || rt.Name() != c.Runtime {
				continue
			}
			bounded, cancel := context.WithTimeout(ctx, imageLook)
			has, err := keeper.HasImage(bounded, checksImage)
			cancel()
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				r.Run.Skipped[c.String()] = err.Error()
			case !has:
				r.Run.Skipped[c.String()] = fmt.Sprintf("%s has no image %s: dray image debian --tar debian.tar && %s import debian.tar %s", c.Runtime, checksImage, c.Runtime, checksImage)
			default:
				delete(r.Run.Skipped, c.String())
			}
		}
	}
}
