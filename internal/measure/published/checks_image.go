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

// checksImage is the image of Docker's in which checks are tried: Drayage's own of
// Debian's base, which has perl.
const checksImage = "dray-debian"

// checksImageOf is the line of a function's image in the chain of checks.
func checksImageOf(rt chain.RuntimeName) string {
	if rt == chain.RuntimeDocker {
		return ", image: " + checksImage
	}
	return ""
}

// imageLook bounds how long an engine may take to say what images it has.
const imageLook = 20 * time.Second

// findImages skips the cells whose functions' image the engine does not have: it is
// the user who says what his engine keeps.
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
