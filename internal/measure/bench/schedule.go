// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/matrix"
)

// visit is one configuration in one round: it is brought up once, and offered
// every load in its own order. A visit without loads measures the generator.
type visit struct {
	config record.Config
	round  int
	loads  []matrix.Load
}

// name is a trial's id without the round.
func (v visit) name(load matrix.Load) string { return fmt.Sprintf("%s/%s", v.config, load) }

// id names a trial.
func (v visit) id(load matrix.Load) string { return fmt.Sprintf("%s-r%d", v.name(load), v.round) }

// ceilingName is the id, without the round, of the trial that measures only the
// generator.
func (v visit) ceilingName() string {
	return fmt.Sprintf("ceiling/%s/%s", v.config.Face, v.config.Size)
}

// visits are one round's visits, each with its loads in random order.
func visits(run *report.BenchRun, round int, rng *rand.Rand) []visit {
	var all []visit
	type generator struct{ face, size string }
	var generators []generator
	for _, row := range run.Rows {
		if row.Skipped != "" {
			continue
		}
		loads := slices.Clone(run.Matrix.Loads)
		rng.Shuffle(len(loads), func(i, j int) { loads[i], loads[j] = loads[j], loads[i] })
		wholeFirst(loads)
		all = append(all, visit{row.Config, round, loads})
		g := generator{ceilingFace(row.Config.Face), row.Config.Size}
		if !slices.Contains(generators, g) {
			generators = append(generators, g)
			all = append(all, visit{record.Config{Face: g.face, Size: g.size}, round, nil})
		}
	}
	return all
}

// wholeFirst puts PDR before its shares, by swapping it with the first of them.
func wholeFirst(loads []matrix.Load) {
	share := slices.IndexFunc(loads, func(l matrix.Load) bool { return l.OfPDR })
	if whole := slices.Index(loads, matrix.Load{Search: matrix.LoadPDR}); share >= 0 && whole > share {
		loads[share], loads[whole] = loads[whole], loads[share]
	}
}

// ceilingFace is the face whose generator measures a face: there is one program
// for DPDK devices, and one for all other faces.
func ceilingFace(face string) string {
	if face == string(chain.FaceDPDK) {
		return face
	}
	return string(chain.FaceNetdev)
}

// Approximate durations of parts of a run on an idle machine.
const (
	upAndDown   = 600 * time.Millisecond // a chain of kernel links, up and down, and its idle measurements
	engineExtra = 2500 * time.Millisecond
	dpdkExtra   = 1200 * time.Millisecond
	trialExtra  = 450 * time.Millisecond // warm-up, and the receiver's wait for the last packets
	ceilingTime = 150 * time.Millisecond // of each half
)

// Estimate is about how long the remaining rounds take, within the matrix's
// limits.
func Estimate(run *report.BenchRun) time.Duration {
	total := (&Runner{Run: run}).loop().Estimate()
	if most := time.Duration(run.Matrix.AtMost); most > 0 {
		return min(total, max(most-run.Took, roundTime(run)))
	}
	return total
}

func roundTime(run *report.BenchRun) time.Duration {
	one := *run
	one.Rounds, one.Matrix.Repetitions = 0, 1
	return (&Runner{Run: &one}).loop().Estimate()
}

func visitTime(run *report.BenchRun, v visit) time.Duration {
	if v.loads == nil {
		return 2*ceilingTime + trialExtra/4
	}
	d := upAndDown
	if v.config.Face == string(chain.FaceDPDK) {
		d += dpdkExtra
	}
	if hasEngine(v.config.Transport) {
		d += engineExtra
	}
	for _, load := range v.loads {
		trials := time.Duration(1)
		if load.Searched() {
			trials = time.Duration(searchTrials(&run.Matrix, load))
		}
		d += trials * (time.Duration(run.Matrix.Trial) + trialExtra)
	}
	return d
}

// hasEngine reports whether a transport starts a program for each link.
func hasEngine(transport string) bool {
	return slices.Contains([]string{"ovs", "ovs-dpdk", "ovs-dray", "vpp", "vpp-memif", "vhost-user"}, transport)
}
