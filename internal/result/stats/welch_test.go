// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// Student's sleep data (Biometrika 6, 1908); its Welch test is the example of R's
// t.test: t = −1.8608, df = 17.776, p = 0.07939. The further digits, and the values of
// the other cases, are from scipy 1.17.1: ttest_ind(equal_var=False) and its
// confidence_interval().
func TestWelchKnown(t *testing.T) {
	drug1 := []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0}
	drug2 := []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	for _, c := range []struct {
		a, b                []float64
		value, low, high, p float64
		df                  float64
	}{
		{drug2, drug1, -1.58, -3.3654832307117104, 0.20548323071171137, 0.0793941401873583, 17.776473516178488},
		{[]float64{1, 2, 4, 9, 12}, []float64{5, 6, 7}, 0.4, -5.391354827459481, 6.191354827459482, 0.8628585486492699, 4.569205035343301},
	} {
		d, err := Welch(c.a, c.b)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "difference", d.Value, c.value, 1e-12)
		near(t, "low", d.CI.Low, c.low, 1e-9)
		near(t, "high", d.CI.High, c.high, 1e-9)
		near(t, "p", d.P, c.p, 1e-9)
		near(t, "degrees of freedom", d.DF, c.df, 1e-9)
	}
}

// exp of the same on logarithms, by scipy.
func TestUnpairedRatioKnown(t *testing.T) {
	r, p, err := UnpairedRatio([]float64{310, 305, 322, 298, 311}, []float64{402, 395, 421, 407, 388})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "ratio", r.Ratio, 1.301989447338195, 1e-12)
	near(t, "low", r.CI.Low, 1.2466455463551407, 1e-9)
	near(t, "high", r.CI.High, 1.3597902996054194, 1e-9)
	near(t, "p", p, 6.946450789879139e-07, 1e-12)
	if r.Indistinguishable() {
		t.Error("30 % more is called indistinguishable")
	}
}

func TestWelchEdges(t *testing.T) {
	var few *TooFewError
	if _, err := Welch([]float64{1}, []float64{1, 2}); !errors.As(err, &few) {
		t.Errorf("one value: %v, want a *TooFewError", err)
	}
	if _, _, err := UnpairedRatio([]float64{1, 2}, []float64{0, 2}); err == nil {
		t.Error("the logarithm of 0 was taken")
	}
	same, err := Welch([]float64{3, 3}, []float64{3, 3, 3})
	if err != nil || !same.Indistinguishable() || same.P != 1 {
		t.Errorf("equal constants: %+v, %v", same, err)
	}
	apart, err := Welch([]float64{3, 3}, []float64{4, 4, 4})
	if err != nil || apart.Indistinguishable() || apart.P != 0 {
		t.Errorf("different constants: %+v, %v", apart, err)
	}
}

// The example of Holm's procedure: ordered p-values times 4, 3, 2 and 1, none below its
// predecessor.
func TestHolm(t *testing.T) {
	got := Holm([]float64{0.01, 0.04, 0.03, 0.005})
	for i, want := range []float64{0.03, 0.06, 0.06, 0.02} {
		near(t, "adjusted p", got[i], want, 1e-12)
	}
	if got := Holm([]float64{0.9, 0.8}); !slices.Equal(got, []float64{1, 1}) {
		t.Errorf("Holm = %v, want no more than 1", got)
	}
	if got := Holm(nil); len(got) != 0 {
		t.Errorf("Holm(nil) = %v", got)
	}
}

// Without events each limit is 1 − 0.025^(1/n), and scipy's
// binomtest(0, 3000).proportion_ci(0.95, "exact") is 0.00122887.
func TestProportionDifferenceKnown(t *testing.T) {
	none := []Cluster{{0, 1000}, {0, 1000}, {0, 1000}}
	d, err := ProportionDifference(none, none)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "value", d.Value, 0, 0)
	near(t, "high", d.CI.High, 0.0012288708038255011, 1e-12)
	near(t, "low", d.CI.Low, -0.0012288708038255011, 1e-12)
	if !d.Indistinguishable() {
		t.Error("no loss on both sides is called a difference")
	}
	many := []Cluster{{100, 1000}, {90, 1000}, {110, 1000}}
	if d, err = ProportionDifference(none, many); err != nil || d.Indistinguishable() || math.Abs(d.Value-0.1) > 1e-12 {
		t.Errorf("0 %% against 10 %%: %+v, %v", d, err)
	}
	back, err := ProportionDifference(many, none)
	if err != nil || math.Abs(back.CI.Low+d.CI.High) > 1e-12 || math.Abs(back.CI.High+d.CI.Low) > 1e-12 {
		t.Errorf("turned round %+v, want the mirror of %+v", back.CI, d.CI)
	}
	var few *TooFewError
	if _, err := ProportionDifference(none, many[:1]); !errors.As(err, &few) {
		t.Errorf("one trial: %v, want a *TooFewError", err)
	}
}
