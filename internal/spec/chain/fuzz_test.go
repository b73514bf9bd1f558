// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// FuzzParse shows of any text that the parser ends, soon; that its errors stand
// in the file, in order, with a fix; and that what it accepts the schema
// accepts too, and survives JSON.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*/*.yaml", "../../../examples/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	for _, grow := range hostile {
		f.Add([]byte(grow(1 << 10)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		start := processorTime(t)
		c, err := Parse("c.yaml", text)
		if took := processorTime(t) - start; took > bound {
			t.Errorf("took %v", took)
		}
		if err != nil {
			checkFaults(t, text, err)
			return
		}
		if schemaVerdict(text) == "rejects" {
			t.Error("the schema rejects what the parser accepts")
		}
		again := throughJSON(t, c)
		if diff := cmp.Diff(c, again, comparePrefixes, ignorePositions, ignoreHasLoad); diff != "" {
			t.Errorf("before (-) and after JSON (+) differ:\n%s", diff)
		}
	})
}

// checkFaults checks what must hold of every error of Parse.
func checkFaults(t *testing.T, text []byte, err error) {
	t.Helper()
	var faults Errors
	if !errors.As(err, &faults) || len(faults) == 0 {
		t.Fatalf("the error is %T", err)
	}
	if len(text) > maxFileSize {
		return // such an error is of the file as a whole
	}
	lines := splitLines(text)
	var last Position
	for _, fault := range faults {
		p := fault.Pos
		if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > utf8.RuneCountInString(lines[p.Line-1])+1 {
			t.Errorf("outside of the file: %v", fault)
		}
		if p.Line < last.Line || p.Line == last.Line && p.Column < last.Column {
			t.Errorf("out of order: %v", fault)
		}
		if fault.Text == "" || fault.Fix == "" || strings.ContainsAny(fault.Error(), "\n\x00") {
			t.Errorf("incomplete or unprintable: %q", fault)
		}
		last = p
	}
}

// splitLines breaks text where YAML does.
func splitLines(text []byte) []string {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	s := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(string(text))
	return strings.Split(s, "\n")
}

// FuzzUnits shows that whatever text a unit's parser accepts, the schema
// accepts, and the value comes back from its own text.
func FuzzUnits(f *testing.F) {
	for _, c := range texts {
		f.Add(c.in)
	}
	for _, text := range []string{"1e-4", "0.01%", "99.9", "p99.9", "5 parsecs", "-1ms", "1..2s", "", "0-2,5"} {
		f.Add(text)
	}
	patterns := unitPatterns(f)
	f.Fuzz(func(t *testing.T, text string) {
		roundTrip(t, patterns["duration"], text, ParseDuration)
		roundTrip(t, patterns["bitrate"], text, ParseBitrate)
		roundTrip(t, patterns["packetrate"], text, ParsePacketRate)
		roundTrip(t, patterns["size"], text, ParseBytes)
		roundTrip(t, patterns["ratio"], text, ParseRatio)
		roundTrip(t, patterns["percentile"], text, ParsePercentile)
		if set, err := ParseCPUSet(text); err == nil && (len(set) == 0 || !patterns["cpus"].MatchString(text)) {
			t.Errorf("cpus %q gave %v", text, set)
		}
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

// FuzzUnitValues shows of any value that it comes back from its text.
func FuzzUnitValues(f *testing.F) {
	for _, c := range texts {
		f.Add(c.value)
	}
	f.Fuzz(func(t *testing.T, v uint64) {
		sameThroughJSON(t, Duration(v&math.MaxInt64))
		sameThroughJSON(t, Bytes(v&math.MaxInt64))
		sameThroughJSON(t, Bitrate(v))
		sameThroughJSON(t, PacketRate(v))
		if x := float64(v) / (1 << 63) / 2; x > 0 && x < 1 {
			sameThroughJSON(t, Ratio(x))
		}
	})
}

// unitPatterns are the schema's patterns of texts with a unit.
func unitPatterns(tb testing.TB) map[string]*regexp.Regexp {
	tb.Helper()
	type form struct {
		Pattern string `json:"pattern"`
		OneOf   []struct {
			Pattern string `json:"pattern"`
		} `json:"oneOf"`
	}
	var root struct {
		Defs map[string]struct {
			form
			Properties map[string]form `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &root); err != nil {
		tb.Fatal(err)
	}
	patterns := map[string]*regexp.Regexp{}
	add := func(name string, f form) {
		for _, alternative := range f.OneOf {
			f.Pattern += alternative.Pattern
		}
		patterns[name] = regexp.MustCompile(f.Pattern)
	}
	for _, name := range []string{"duration", "bitrate", "packetrate", "size", "ratio", "percentile"} {
		add(name, root.Defs[name].form)
	}
	add("cpus", root.Defs["function"].Properties["cpus"])
	return patterns
}
