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
)

// visit is one configuration in one round: it is brought up once, and offered
// every load in an order of its own. One without loads measures the generator.
type visit struct {
	config record.Config
	round  int
	loads  []chain.BenchLoad
}

// id names a trial.
func (v visit) id(load chain.BenchLoad) string {
	return fmt.Sprintf("%s/%s-r%d", v.config, load, v.round)
}

// ceilingID names the trial that measures the generator alone.
func (v visit) ceilingID() string {
	return fmt.Sprintf("ceiling/%s/%s-r%d", v.config.Face, v.config.Size, v.round)
}

// schedule draws the order of one round. It depends on nothing but the seed, the
// round and the rows, so that a run that is taken up again goes on as it would have.
func schedule(run *report.BenchRun, round int) []visit {
	rng := rand.New(rand.NewPCG(run.Seed, uint64(round)))
	var visits []visit
	type generator struct{ face, size string }
	var generators []generator
	for _, row := range run.Rows {
		if row.Skipped != "" {
			continue
		}
		loads := slices.Clone(run.Matrix.Loads)
		rng.Shuffle(len(loads), func(i, j int) { loads[i], loads[j] = loads[j], loads[i] })
		wholeFirst(loads)
		visits = append(visits, visit{row.Config, round, loads})
		g := generator{ceilingFace(row.Config.Face), row.Config.Size}
		if !slices.Contains(generators, g) {
			generators = append(generators, g)
			visits = append(visits, visit{record.Config{Face: g.face, Size: g.size}, round, nil})
		}
	}
	rng.Shuffle(len(visits), func(i, j int) { visits[i], visits[j] = visits[j], visits[i] })
	return visits
}

// wholeFirst puts PDR in front of its shares, by changing places with the first
// of them.
func wholeFirst(loads []chain.BenchLoad) {
	share := slices.IndexFunc(loads, func(l chain.BenchLoad) bool { return l.OfPDR })
	if whole := slices.Index(loads, chain.BenchLoad{Search: chain.LoadPDR}); share >= 0 && whole > share {
		loads[share], loads[whole] = loads[whole], loads[share]
	}
}

// ceilingFace is the face whose generator measures a face: there is one program
// for DPDK's devices, and one for all else.
func ceilingFace(face string) string {
	if face == string(chain.FaceDPDK) {
		return face
	}
	return string(chain.FaceNetdev)
}

// About how long parts of a run take on an idle machine.
const (
	upAndDown   = 600 * time.Millisecond // a chain of kernel links, up and down, and what is measured of it at rest
	engineExtra = 2500 * time.Millisecond
	dpdkExtra   = 1200 * time.Millisecond
	trialExtra  = 450 * time.Millisecond // warm-up, and what a receiver waits for the last packets
	ceilingTime = 150 * time.Millisecond // of each half
)

// Estimate is about how long the rounds take that are left, as far as the matrix
// lets them.
func Estimate(run *report.BenchRun) time.Duration {
	total := time.Duration(run.Matrix.Repetitions-run.Rounds) * roundTime(run)
	if most := time.Duration(run.Matrix.AtMost); most > 0 {
		return min(total, max(most-run.Took, roundTime(run)))
	}
	return total
}

func roundTime(run *report.BenchRun) time.Duration {
	var sum time.Duration
	for _, v := range schedule(run, 0) {
		sum += visitTime(run, v)
	}
	return sum
}

func visitTime(run *report.BenchRun, v visit) time.Duration {
	if v.loads == nil {
		return 2*ceilingTime + trialExtra/4
	}
	d := upAndDown
	if v.config.Face == string(chain.FaceDPDK) {
		d += dpdkExtra
	}
	if engine(v.config.Transport) {
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

// engine reports whether a program has to be started for each link of a transport.
func engine(transport string) bool {
	return slices.Contains([]string{"ovs", "ovs-dpdk", "ovs-dray", "vpp", "vpp-memif", "vhost-user"}, transport)
}
