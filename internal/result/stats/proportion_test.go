// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// The bounds of 3 in 10 are from the classical table; the others are closed forms.
func TestClopperPearsonKnown(t *testing.T) {
	cases := []struct{ x, n, lower, upper float64 }{
		{0, 10, 0, 1 - math.Pow(0.05, 0.1)},
		{10, 10, math.Pow(0.05, 0.1), 1},
		{3, 10, 0.0872644, 0.6066242},
		{0, 29957, 0, 1 - math.Pow(0.05, 1.0/29957)},
	}
	for _, c := range cases {
		lower, upper, err := ClopperPearsonAt(Confidence, c.x, c.n)
		if err != nil {
			t.Fatal(err)
		}
		near(t, fmt.Sprintf("lower bound of %g/%g", c.x, c.n), lower, c.lower, 1e-7)
		near(t, fmt.Sprintf("upper bound of %g/%g", c.x, c.n), upper, c.upper, 1e-7)
	}
}

// At a bound the binomial tail, summed term by term, is 5 %.
func TestClopperPearsonBySum(t *testing.T) {
	const n = 1000
	for _, x := range []int{1, 7, 50, 500, 999} {
		lower, upper, err := ClopperPearsonAt(Confidence, float64(x), n)
		if err != nil {
			t.Fatal(err)
		}
		near(t, fmt.Sprintf("P(X ≤ %d) at the upper bound", x), binomialSum(0, x, n, upper), 0.05, 1e-9)
		near(t, fmt.Sprintf("P(X ≥ %d) at the lower bound", x), binomialSum(x, n, n, lower), 0.05, 1e-9)
	}
}

func binomialSum(from, to, n int, p float64) float64 {
	lg := func(v int) float64 { r, _ := math.Lgamma(float64(v) + 1); return r }
	var sum float64
	for k := from; k <= to; k++ {
		sum += math.Exp(lg(n) - lg(k) - lg(n-k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	}
	return sum
}

// At a bound the binomial tail is 5 %. This must hold for sizes far beyond printed
// tables, at which an inverse may lose precision.
func TestClopperPearsonTails(t *testing.T) {
	for _, n := range []float64{20, 333.3, 1e4, 1e6, 1e8} {
		for _, share := range []float64{1e-6, 1e-3, 0.1, 0.5, 0.99} {
			x := math.Round(n * share)
			if x == 0 || x >= n {
				continue
			}
			lower, upper, err := ClopperPearsonAt(Confidence, x, n)
			if err != nil {
				t.Fatal(err)
			}
			near(t, fmt.Sprintf("P(X ≥ %g; %g, lower)", x, n), mathext.RegIncBeta(x, n-x+1, lower), 0.05, 1e-6)
			near(t, fmt.Sprintf("P(X ≤ %g; %g, upper)", x, n), 1-mathext.RegIncBeta(x+1, n-x, upper), 0.05, 1e-6)
			if !(lower < x/n && x/n < upper) {
				t.Errorf("%g/%g is not within %g…%g", x, n, lower, upper)
			}
		}
	}
}

func TestRuleOfThree(t *testing.T) {
	for _, r := range []float64{1e-2, 1e-4, 1e-7} {
		_, upper, err := ClopperPearsonAt(Confidence, 0, math.Ceil(3/r))
		if err != nil || upper > r {
			t.Errorf("no loss in 3/r packets: upper bound %g, %v; want at most %g", upper, err, r)
		}
		if _, upper, _ = ClopperPearsonAt(Confidence, 0, 2.9/r); upper <= r {
			t.Errorf("no loss in 2.9/r packets proves %g, and must not", r)
		}
	}
}

func TestProportionTooFew(t *testing.T) {
	var few *TooFewError
	if _, _, err := ClopperPearsonAt(Confidence, 0, 0); !errors.As(err, &few) {
		t.Errorf("0 of 0: error %v, want a *TooFewError", err)
	}
	if _, err := Clustered([]Cluster{{1, 100}, {0, 0}}); !errors.As(err, &few) {
		t.Errorf("one trial: error %v, want a *TooFewError", err)
	}
}

func TestDesignEffectSeesOneBadTrial(t *testing.T) {
	even, err := Clustered([]Cluster{{20, 1000}, {20, 1000}, {20, 1000}})
	if err != nil {
		t.Fatal(err)
	}
	uneven, err := Clustered([]Cluster{{60, 1000}, {0, 1000}, {0, 1000}})
	if err != nil {
		t.Fatal(err)
	}
	if even.Deff != 1 || uneven.Deff < 20 {
		t.Errorf("design effects %g and %g, want 1 and at least 20", even.Deff, uneven.Deff)
	}
	if uneven.Upper < 2*even.Upper || uneven.Lower > even.Lower/2 {
		t.Errorf("bounds %g…%g of one bad trial must be far wider than %g…%g", uneven.Lower, uneven.Upper, even.Lower, even.Upper)
	}
}

func TestNoEventsKeepTheRuleOfThree(t *testing.T) {
	p, err := Clustered([]Cluster{{0, 1000}, {0, 1000}, {0, 1000}})
	if err != nil || p.Deff != 1 || p.EffectiveN != 3000 || p.Upper > 1e-3 {
		t.Errorf("no events: %+v, %v; want all samples counted and an upper bound of 3/n", p, err)
	}
}

// Clopper–Pearson never covers less than stated, and more with few events. If trials
// differ (beta-binomial, intra-trial correlation rho), the bounds must hold nearly as
// often, although bounds from samples taken as independent fail badly. The doc comment
// of Clustered states the floors.
func TestClusteredCoverage(t *testing.T) {
	cases := []struct {
		trials     int
		share, rho float64
		floor      float64
	}{
		{3, 0.02, 0, 0.95}, {5, 0.02, 0, 0.95}, {10, 0.02, 0, 0.95}, {30, 0.02, 0, 0.95},
		{3, 0.02, 0.005, 0.91}, {5, 0.02, 0.005, 0.91}, {10, 0.02, 0.005, 0.91}, {30, 0.02, 0.005, 0.91},
	}
	const samples = 2000
	for _, c := range cases {
		var upper, lower, naive float64
		for seed := range uint64(simulations) {
			rng := rand.New(rand.NewPCG(seed, uint64(c.trials)))
			clusters := make([]Cluster, c.trials)
			var x float64
			for i := range clusters {
				clusters[i] = Cluster{betaBinomial(rng, samples, c.share, c.rho), samples}
				x += clusters[i].Events
			}
			p, err := Clustered(clusters)
			if err != nil {
				t.Fatal(err)
			}
			upper += one(c.share <= p.Upper)
			lower += one(p.Lower <= c.share)
			_, u, err := ClopperPearsonAt(Confidence, x, samples*float64(c.trials))
			if err != nil {
				t.Fatal(err)
			}
			naive += one(c.share <= u)
		}
		if upper/simulations < c.floor || lower/simulations < c.floor {
			t.Errorf("%d trials, rho=%g: bounds cover in %.1f %% (upper) and %.1f %% (lower), want at least %.0f %%",
				c.trials, c.rho, 100*upper/simulations, 100*lower/simulations, 100*c.floor)
		}
		if c.rho > 0 && naive/simulations > 0.85 {
			t.Errorf("%d trials, rho=%g: the naive bound covers in %.1f %%: this case tests nothing", c.trials, c.rho, 100*naive/simulations)
		}
	}
}

// betaBinomial draws events among n samples of one trial, whose own share is
// beta-distributed with the intra-class correlation rho.
func betaBinomial(rng *rand.Rand, n, share, rho float64) float64 {
	if rho > 0 {
		m := 1/rho - 1
		share = distuv.Beta{Alpha: share * m, Beta: (1 - share) * m, Src: rng}.Rand()
	}
	return distuv.Binomial{N: n, P: share, Src: rng}.Rand()
}
