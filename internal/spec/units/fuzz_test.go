// SPDX-License-Identifier: Apache-2.0

package units

import (
	"encoding/json"
	"math"
	"regexp"
	"testing"
)

// FuzzUnits shows that the schema accepts all text that a unit's parser accepts, and
// that the value survives conversion to text.
func FuzzUnits(f *testing.F) {
	for _, c := range texts {
		f.Add(c.in)
	}
	for _, text := range []string{"1e-4", "0.01%", "99.9", "p99.9", "5 parsecs", "-1ms", "1..2s", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		roundTrip(t, regexp.MustCompile(DurationPattern), text, ParseDuration)
		roundTrip(t, regexp.MustCompile(BitratePattern), text, ParseBitrate)
		roundTrip(t, regexp.MustCompile(PacketRatePattern), text, ParsePacketRate)
		roundTrip(t, regexp.MustCompile(LengthPattern), text, ParseLength)
		roundTrip(t, regexp.MustCompile(BytesPattern), text, ParseBytes)
		roundTrip(t, regexp.MustCompile(RatioPattern), text, ParseRatio)
		roundTrip(t, regexp.MustCompile(PercentilePattern), text, ParsePercentile)
	})
}

func roundTrip[T comparable](t *testing.T, pattern *regexp.Regexp, text string, parse func(string) (T, error)) {
	t.Helper()
	v, err := parse(text)
	if err != nil {
		return
	}
	if !pattern.MatchString(text) {
		t.Errorf("%T: the schema rejects %q", v, text)
	}
	sameThroughJSON(t, v)
}

func sameThroughJSON[T comparable](t *testing.T, v T) {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var again T
	if err := json.Unmarshal(encoded, &again); err != nil || again != v {
		t.Errorf("%T: %s came back as %v, error %v", v, encoded, again, err)
	}
}

// FuzzUnitValues shows that any value survives conversion to text.
func FuzzUnitValues(f *testing.F) {
	for _, c := range texts {
		f.Add(c.value)
	}
	f.Fuzz(func(t *testing.T, v uint64) {
		sameThroughJSON(t, Duration(v&math.MaxInt64))
		sameThroughJSON(t, Bytes(v&math.MaxInt64))
		sameThroughJSON(t, Length(v&math.MaxInt64))
		sameThroughJSON(t, Bitrate(v))
		sameThroughJSON(t, PacketRate(v))
		if x := float64(v) / (1 << 63) / 2; x > 0 && x < 1 {
			sameThroughJSON(t, Ratio(x))
		}
	})
}
