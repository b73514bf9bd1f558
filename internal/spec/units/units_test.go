// SPDX-License-Identifier: Apache-2.0

package units

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/drayage/dray/internal/spec/parse"
)

// texts are quantities with their value and canonical text.
var texts = []struct {
	kind, in string
	value    uint64
	out      string
}{
	{"duration", "20us", 20e3, "20us"},
	{"duration", "1.5ms", 1500e3, "1.5ms"},
	{"duration", "1500us", 1500e3, "1.5ms"},
	{"duration", "20µs", 20e3, "20us"},
	{"duration", "20μs", 20e3, "20us"},
	{"duration", "2s", 2e9, "2s"},
	{"duration", "0.001us", 1, "1ns"},
	{"duration", "0s", 0, "0s"},
	{"duration", "9223372036.854775807s", math.MaxInt64, "9223372036.854775807s"},
	{"bitrate", "400Mbps", 400e6, "400Mbps"},
	{"bitrate", "4.016Gbps", 4016e6, "4.016Gbps"},
	{"bitrate", "04.0160Gbps", 4016e6, "4.016Gbps"},
	{"bitrate", "0bps", 0, "0bps"},
	{"bitrate", "999bps", 999, "999bps"},
	{"bitrate", "18446744.073709551615Tbps", math.MaxUint64, "18446744.073709551615Tbps"},
	{"packet rate", "100kpps", 100e3, "100kpps"},
	{"packet rate", "1.2Mpps", 1200e3, "1.2Mpps"},
	{"length", "40km", 40_000, "40km"},
	{"length", "0.3km", 300, "300m"},
	{"length", "1250m", 1250, "1.25km"},
	{"size", "512Mi", 512 << 20, "512Mi"},
	{"size", "1500", 1500, "1500"},
	{"size", "64k", 64000, "64k"},
	{"size", "4Ki", 4096, "4Ki"},
	{"size", "1.5Gi", 1536 << 20, "1536Mi"},
	{"size", "1024000", 1024000, "1000Ki"},
	{"size", "0", 0, "0"},
}

// parseAny parses a quantity of any kind, and returns its value and text.
func parseAny(kind, text string) (uint64, string, error) {
	switch kind {
	case "duration":
		v, err := ParseDuration(text)
		return uint64(v), v.String(), err
	case "bitrate":
		v, err := ParseBitrate(text)
		return uint64(v), v.String(), err
	case "packet rate":
		v, err := ParsePacketRate(text)
		return uint64(v), v.String(), err
	case "length":
		v, err := ParseLength(text)
		return uint64(v), v.String(), err
	case "size":
		v, err := ParseBytes(text)
		return uint64(v), v.String(), err
	}
	return 0, "", fmt.Errorf("no such kind: %s", kind)
}

func TestQuantities(t *testing.T) {
	for _, c := range texts {
		value, text, err := parseAny(c.kind, c.in)
		if err != nil || value != c.value || text != c.out {
			t.Errorf("%s %q: got %d, %q, %v; want %d, %q", c.kind, c.in, value, text, err, c.value, c.out)
		}
	}
}

func TestQuantityErrors(t *testing.T) {
	for _, c := range []struct{ kind, in, want string }{
		{"duration", "", `the duration "" is empty; write something like "1.5ms"`},
		{"duration", "ms", `the duration "ms" is not a number with a unit; write something like "1.5ms"`},
		{"duration", "1.ms", `the duration "1.ms" is not a number with a unit; write something like "1.5ms"`},
		{"duration", ".5ms", `the duration ".5ms" is not a number with a unit; write something like "1.5ms"`},
		{"duration", "+5ms", `the duration "+5ms" is not a number with a unit; write something like "1.5ms"`},
		{"duration", "1e3ms", `the duration "1e3ms" has the unknown unit "e3ms"; the units are ns, us, ms, s`},
		{"duration", "5 ms", `the duration "5 ms" has a space next to its unit; did you mean "5ms"?`},
		{"duration", "5m", `the duration "5m" has the unknown unit "m"; did you mean "5ms"?`},
		{"duration", "0.0000000001s", `the duration "0.0000000001s" is finer than 1ns; write a whole number of 1ns`},
		{"duration", "0.000000000000000000000001s", `the duration "0.000000000000000000000001s" is finer than 1ns; write fewer digits`},
		{"duration", "9223372036.854775808s", `the duration "9223372036.854775808s" is too large; the largest is 9223372036.854775807s`},
		{"bitrate", "18446744073709551616bps", `the bitrate "18446744073709551616bps" is too large; the largest is 18446744.073709551615Tbps`},
		{"bitrate", "2mbps", `the bitrate "2mbps" has the unknown unit "mbps"; did you mean "2Mbps"?`},
		{"bitrate", "2Gb/s", `the bitrate "2Gb/s" has the unknown unit "Gb/s"; did you mean "2Gbps"?`},
		{"length", "2.0005km", `the length "2.0005km" is finer than 1m; write a whole number of 1m`},
		{"size", "1.5", `the size "1.5" is finer than 1 byte; write a whole number of 1 byte`},
	} {
		_, _, err := parseAny(c.kind, c.in)
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: got %v, want %s", c.in, err, c.want)
		}
	}
}

func TestNegativeDurationPrintsItsSign(t *testing.T) {
	if got := Duration(-1500e3).String(); got != "-1.5ms" {
		t.Errorf("got %q", got)
	}
}

func TestRatios(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Ratio
		out  string
	}{
		{"1e-4", 1e-4, "1e-4"},
		{"1E-7", 1e-7, "1e-7"},
		{"0.0001", 1e-4, "1e-4"},
		{"0.01%", 1e-4, "1e-4"},
		{"0.07%", 0.0007, "7e-4"},
		{"50%", 0.5, "0.5"},
		{"0.999", 0.999, "0.999"},
		{"2.5e-12", 2.5e-12, "2.5e-12"},
	} {
		got, err := ParseRatio(c.in)
		if err != nil || got != c.want || got.String() != c.out {
			t.Errorf("%q: got %v, %q, %v; want %v, %q", c.in, float64(got), got, err, float64(c.want), c.out)
		}
	}
}

func TestRatioErrors(t *testing.T) {
	for _, in := range []string{"", "0", "1", "2", "100%", "-0.1", "NaN", "Inf", "0x1p-2", "1_0e-4", "e-4", "1e", "1e--4", "1e-4%", "1e-400", "0.99999999999999999999"} {
		if got, err := ParseRatio(in); err == nil {
			t.Errorf("%q gave %v", in, got)
		}
	}
}

func TestPercentiles(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Percentile
		out  string
	}{
		{"99", 99, "99"}, {"99.9", 99.9, "99.9"}, {"p99.99", 99.99, "99.99"}, {"0.1", 0.1, "0.1"},
	} {
		got, err := ParsePercentile(c.in)
		if err != nil || got != c.want || got.String() != c.out {
			t.Errorf("%q: got %v, %v", c.in, got, err)
		}
	}
}

func TestPercentileErrors(t *testing.T) {
	for _, in := range []string{"", "p", "0", "100", "-1", "1e1", "99.99999999999999999999", "NaN", "pp99"} {
		if got, err := ParsePercentile(in); err == nil {
			t.Errorf("%q gave %v", in, got)
		}
	}
}

func TestUnitsAreTextInJSON(t *testing.T) {
	type all struct {
		D Duration
		B Bitrate
		S Bytes
		P PacketRate
		L Length
		R Ratio
		C Percentile
	}
	want := all{1500e3, 4016e6, 512 << 20, 100e3, 40_000, 1e-4, 99.9}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	const form = `{"D":"1.5ms","B":"4.016Gbps","S":"512Mi","P":"100kpps","L":"40km","R":"1e-4","C":"99.9"}`
	if string(text) != form {
		t.Errorf("got %s, want %s", text, form)
	}
	var got all
	if err := json.Unmarshal(text, &got); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestUnmarshalErrorNamesTheFix(t *testing.T) {
	var d Duration
	var fault *parse.Error
	if err := d.UnmarshalText([]byte("1.5")); !errors.As(err, &fault) || fault.Fix == "" {
		t.Errorf("error %v", err)
	}
}
