// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/experiment"
)

// around are n values with 1 % of noise.
func around(rng *rand.Rand, n int, mean float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = mean * (1 + 0.01*rng.NormFloat64())
	}
	return values
}

// claimOn decides a claim on rows with those means, of n rounds each; 0: not measured.
func claimOn(t *testing.T, c experiment.Claim, n int, means map[string]float64) ClaimLine {
	t.Helper()
	f := newExperiments(t)
	f.run.Rounds = n
	f.run.Experiments[0].Rows, f.run.Experiments[0].Claims = nil, []experiment.Claim{c}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"a", "b", "c", "d"} { // a map has no order
		f.run.Experiments[0].Rows = append(f.run.Experiments[0].Rows, measuredRow(name, 0))
		if means[name] > 0 {
			f.add(name, []string{}, around(rng, n, means[name])...)
		}
	}
	d := f.load(t)
	return d.Claims(&d.Run.Experiments[0])[0]
}

func TestRankingClaims(t *testing.T) {
	order := []experiment.RowNames{{"a"}, {"b"}, {"c", "d"}}
	both := experiment.Claim{Less: experiment.RowNames{"a", "b"}, Than: experiment.RowNames{"c", "d"}}
	for name, c := range map[string]struct {
		claim experiment.Claim
		means [4]float64
		want  string
		why   string
	}{
		"ranked":              {experiment.Claim{Order: order}, [4]float64{10, 11, 12, 12}, ClaimHeld, "3 of 3 comparisons hold together (Holm); "},
		"last two in any way": {experiment.Claim{Order: order}, [4]float64{10, 11, 15, 12}, ClaimHeld, "3 of 3"},
		"first two reversed":  {experiment.Claim{Order: order}, [4]float64{11, 10, 12, 12}, ClaimNotHeld, "2 of 3 comparisons hold together (Holm); a to b: ratio 1.10"},
		"first two alike":     {experiment.Claim{Order: order}, [4]float64{10, 10, 12, 12}, ClaimUndecided, "indistinguishable"},
		"one not run":         {experiment.Claim{Order: order}, [4]float64{10, 11, 12, 0}, ClaimUndecided, "2 of 3 comparisons hold together (Holm); b to d: TCP over d was not run here"},
		"not run but refuted": {experiment.Claim{Order: order}, [4]float64{11, 10, 12, 0}, ClaimNotHeld, "a to b"},
		"each below its own":  {both, [4]float64{10, 20, 11, 22}, ClaimHeld, "2 of 2"},
		"one above its own":   {both, [4]float64{10, 23, 11, 22}, ClaimNotHeld, "b to d"},
	} {
		t.Run(name, func(t *testing.T) {
			c.claim.Text = name
			got := claimOn(t, c.claim, 10, map[string]float64{"a": c.means[0], "b": c.means[1], "c": c.means[2], "d": c.means[3]})
			if got.Word != c.want || !strings.Contains(got.Why, c.why) {
				t.Errorf("%s (%s), want %s (%s)", got.Word, got.Why, c.want, c.why)
			}
		})
	}
}

// TestClaimsOfAFactor: the published factor is what the claim says.
func TestClaimsOfAFactor(t *testing.T) {
	for want, b := range map[string]float64{ClaimHeld: 22, ClaimNotHeld: 18, ClaimUndecided: 20} {
		c := experiment.Claim{Text: "half", Less: experiment.RowNames{"a"}, Than: experiment.RowNames{"b"}, Times: 2}
		got := claimOn(t, c, 10, map[string]float64{"a": 10, "b": b})
		if got.Word != want || !strings.Contains(got.Why, "claimed: at most 0.500") {
			t.Errorf("%s (%s), want %s", got.Word, got.Why, want)
		}
	}
}

// TestAllOfSeveralAreTheSame: every two of them are.
func TestAllOfSeveralAreTheSame(t *testing.T) {
	for want, d := range map[string]float64{ClaimHeld: 10.2, ClaimNotHeld: 13, ClaimUndecided: 11} {
		c := experiment.Claim{Text: "alike", Same: experiment.RowNames{"a", "b", "c", "d"}, Within: 0.1}
		got := claimOn(t, c, 10, map[string]float64{"a": 10, "b": 10, "c": 10.1, "d": d})
		if got.Word != want || len(got.Comparisons) != 6 {
			t.Errorf("%s (%s) of %d comparisons, want %s of 6", got.Word, got.Why, len(got.Comparisons), want)
		}
	}
}

// TestManyComparisonsErrTogether: of equal rows, at most 5 % of the claims are decided,
// however many comparisons a claim has. Alone, each of six would err in 5 %.
func TestManyComparisonsErrTogether(t *testing.T) {
	const claims = 400
	rng := rand.New(rand.NewPCG(5, 6))
	wrong, alone := 0, 0
	for range claims {
		lines := make([]ComparisonLine, 6)
		for i := range lines {
			p := rng.Float64() // of a true null hypothesis
			lines[i].Held, lines[i].Reversed = min(1, 2*p), min(1, 2*(1-p))
			if lines[i].Reversed < significant {
				alone++
			}
		}
		adjust(lines)
		all := make([]experiment.Comparison, len(lines))
		if word, _ := decide(all, lines); word != ClaimUndecided {
			wrong++
		}
	}
	if wrong > claims/20 || alone < claims/10 {
		t.Errorf("%d of %d claims about equal rows were decided; %d comparisons alone are", wrong, claims, alone)
	}
}

// TestClaimsOfADamagedRun: a claim without rows, and one with rows that do not exist.
func TestClaimsOfADamagedRun(t *testing.T) {
	for _, c := range []experiment.Claim{{Text: "t"}, {Text: "t", Order: []experiment.RowNames{{"x"}, {"y"}}}} {
		if got := claimOn(t, c, 5, nil); got.Word != ClaimUndecided || got.Why == "" {
			t.Errorf("%+v", got)
		}
	}
}

// TestClaimsNameTheirSource: a claim with a page is its source's, any other is ours.
func TestClaimsNameTheirSource(t *testing.T) {
	f := goodExperiments(t)
	e := &f.run.Experiments[0]
	e.Source = "X12: a paper (2012), figure 1"
	e.Claims[0].Page = "p. 7"
	d := f.load(t)
	got := d.Claims(&d.Run.Experiments[0])
	if got[0].Source != "X12" || got[0].Page != "p. 7" || got[1].Source != "" || got[1].Page != "" {
		t.Errorf("%+v", got[:2])
	}
	if strings.Join(got[0].Marks, " ") != "differs oversubscribed" {
		t.Errorf("marks %v", got[0].Marks)
	}
	if l := d.Lines(&d.Run.Experiments[0])[0]; l.Differs != "another tool" || strings.Join(l.Marks, " ") != markDiffers {
		t.Errorf("%+v", l)
	}
}

// TestDifferencesShareALine: measured rows that follow each other and differ alike have
// one line on a terminal.
func TestDifferencesShareALine(t *testing.T) {
	one := 1.0
	lines := []ExperimentLine{
		{Title: "a", Differs: "x", Measured: &one}, {Title: "b", Differs: "x"}, {Title: "c", Differs: "x", Measured: &one}, {Title: "d", Measured: &one},
		{Title: "e", Differs: "x", Measured: &one}, {Title: "f", Differs: "y", Measured: &one},
	}
	var got []string
	for _, f := range differences(lines).List {
		got = append(got, f.Name+": "+f.Text)
	}
	if strings.Join(got, "; ") != "a … c: x; e: x; f: y" {
		t.Errorf("%q", got)
	}
}
