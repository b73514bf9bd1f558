// SPDX-License-Identifier: Apache-2.0

package document

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/drayage/dray/test/testenv"
)

// luminance is the relative luminance of a colour (WCAG 2.2).
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	var c [3]float64
	for i := range c {
		v, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		testenv.Must(t, err)
		c[i] = float64(v) / 255
		if c[i] <= 0.04045 {
			c[i] /= 12.92
		} else {
			c[i] = math.Pow((c[i]+0.055)/1.055, 2.4)
		}
	}
	return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2]
}

// Text has a contrast of 4.5:1 (WCAG AA) and plot lines 3:1, in both themes.
func TestContrast(t *testing.T) {
	light, dark, ok := strings.Cut(styleText, "prefers-color-scheme: dark")
	if !ok {
		t.Fatal("no dark theme")
	}
	dark, _, _ = strings.Cut(dark, "@media print")
	pairs := []struct {
		fore, back string
		least      float64
	}{
		{"text", "page", 7}, {"text", "card", 7}, {"text", "soft", 7}, {"muted", "page", 4.5}, {"muted", "card", 4.5}, {"muted", "soft", 4.5},
		{"accent", "page", 4.5}, {"accent", "soft", 4.5}, {"missed", "page", 4.5}, {"met", "card", 4.5}, {"missed", "card", 4.5}, {"open", "card", 4.5},
		{"met", "met-bg", 4.5}, {"missed", "missed-bg", 4.5}, {"open", "open-bg", 4.5}, {"open", "page", 4.5},
		{"s0", "page", 3}, {"s1", "page", 3}, {"s2", "page", 3}, {"s3", "page", 3},
	}
	for theme, css := range map[string]string{"light": light, "dark": dark} {
		colours := map[string]string{}
		for _, m := range colour.FindAllStringSubmatch(css+";", -1) {
			colours[m[1]] = strings.TrimPrefix(m[2], "#")
		}
		for _, p := range pairs {
			if colours[p.fore] == "" || colours[p.back] == "" {
				t.Fatalf("%s: no colour %s or %s", theme, p.fore, p.back)
			}
			a, b := luminance(t, colours[p.fore]), luminance(t, colours[p.back])
			if ratio := (math.Max(a, b) + 0.05) / (math.Min(a, b) + 0.05); ratio < p.least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", theme, p.fore, p.back, ratio, p.least)
			}
		}
	}
}
