// SPDX-License-Identifier: Apache-2.0

package chainrun

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
)

// startAndMeasurePaths measures every path while the commands of its functions run. The
// instruments take the place of commands that would open the ports of the path's ends.
func (r *Run) startAndMeasurePaths(ctx context.Context, live *node.Live) error {
	for _, g := range groups(live) {
		text := "Starting the functions' commands"
		if len(g.except) > 0 {
			text += ", except " + parse.All(g.except) + ","
		}
		r.Say(text + " to measure " + g.names())
		err := r.phase("paths", func() error {
			return r.supervised(ctx, live, g.except, func(failed error) error {
				if failed != nil {
					return failed
				}
				return r.measurePaths(ctx, live, g.paths)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Paths measures the paths of a chain whose commands run, except those with an end that a
// command has opened.
func (r *Run) Paths(ctx context.Context, live *node.Live) error {
	var free []plan.Path
	for _, g := range groups(live) {
		if held := slices.DeleteFunc(g.except, func(f string) bool { return !r.runs(f) }); len(held) > 0 {
			r.Say(fmt.Sprintf("Not measured: %s, since the command of %s has opened an end: `dray run` measures without it", g.names(), parse.All(held)))
			continue
		}
		free = append(free, g.paths...)
	}
	if len(free) == 0 {
		return nil
	}
	return r.phase("paths", func() error { return r.measurePaths(ctx, live, free) })
}

func (r *Run) runs(function string) bool {
	return slices.ContainsFunc(r.Functions, func(st node.FunctionStatus) bool { return st.Name == function && commandRuns(st) })
}

func (r *Run) measurePaths(ctx context.Context, live *node.Live, paths []plan.Path) error {
	own := *live.State.Plan
	own.Paths = paths
	in := r.input(live)
	in.Plan, in.Options.Held = &own, nil
	r.Say(fmt.Sprintf("Measuring %s, about %v", count(len(paths), "path"),
		verify.Estimate(own.OfPaths(), in.Options, r.dir.Earlier...).Round(time.Second)))
	return verify.Paths(ctx, in, r.Say)
}

// group are paths that are measured together.
type group struct {
	paths  []plan.Path
	except []string // functions whose commands would hold an end of theirs
}

func (g group) names() string {
	var names []string
	for _, p := range g.paths {
		names = append(names, p.Name)
	}
	if len(names) == 1 {
		return "path " + names[0]
	}
	return "paths " + parse.All(names)
}

func groups(live *node.Live) []group {
	var all []group
	for i, l := range live.State.Plan.OfPaths().Links {
		except := holders(live.Chain, l)
		at := slices.IndexFunc(all, func(g group) bool { return slices.Equal(g.except, except) })
		if at < 0 {
			at, all = len(all), append(all, group{except: except})
		}
		all[at].paths = append(all[at].paths, live.State.Plan.Paths[i])
	}
	return all
}

// holders are the functions whose commands open an end of the path as their own.
func holders(c *chain.Chain, path plan.Link) []string {
	var names []string
	for _, e := range path.Ends {
		if e.Face != chain.FaceNetdev && len(c.Function(e.Function).Command) > 0 {
			names = append(names, e.Function)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
