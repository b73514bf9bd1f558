// SPDX-License-Identifier: Apache-2.0

package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/drayage/dray/internal/spec/parse"
)

// Every unit type is written in JSON and text as its unit string, and reads back as the
// same value.

// Duration is a time span; written "20us", "1.5ms", "2s".
//
//	duration = number ("ns" | "us" | "µs" | "ms" | "s")
type Duration time.Duration

// Bitrate is in bit/s; written "400Mbps", "4.016Gbps". Prefixes are decimal.
//
//	bitrate = number ("bps" | "kbps" | "Mbps" | "Gbps" | "Tbps")
type Bitrate uint64

// Bytes is a size; written "512Mi" (2^20), "1500", "64k" (10^3), "4Ki" (2^10).
//
//	bytes = number ["k" | "M" | "G" | "T" | "Ki" | "Mi" | "Gi" | "Ti"]
type Bytes uint64

// PacketRate is in packets per second; written "100kpps", "1.2Mpps".
//
//	packetrate = number ("pps" | "kpps" | "Mpps" | "Gpps")
type PacketRate uint64

// Length is of a cable, in metres; written "40km", "0.3km", "250m".
//
//	length = number ("m" | "km")
type Length uint64

// Ratio is a proportion in (0, 1); written "1e-4", 0.0001 or "0.01%".
//
//	ratio = number [("e" | "E") ["+" | "-"] digit {digit}] | number "%"
type Ratio float64

// Percentile is in (0, 100); written 99.9 or "p99.9".
//
//	percentile = ["p"] number
type Percentile float64

// The forms of each quantity's text, as JSON Schema regular expressions.
const (
	DurationPattern   = `^[0-9]+([.][0-9]+)?(n|u|µ|μ|m)?s$`
	BitratePattern    = `^[0-9]+([.][0-9]+)?(k|M|G|T)?bps$`
	PacketRatePattern = `^[0-9]+([.][0-9]+)?(k|M|G)?pps$`
	BytesPattern      = `^[0-9]+([.][0-9]+)?((k|M|G|T)|(K|M|G|T)i)?$`
	LengthPattern     = `^[0-9]+([.][0-9]+)?k?m$`
	RatioPattern      = `^[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+|%)?$`
	PercentilePattern = `^p?[0-9]+([.][0-9]+)?$`
)

var (
	durations = &measure{
		name: "duration", base: "1ns", example: "1.5ms", max: math.MaxInt64,
		units: []unit{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}},
	}
	bitrates = &measure{
		name: "bitrate", base: "1bps", example: "2Gbps", max: math.MaxUint64,
		units: []unit{{"bps", 1}, {"kbps", 1e3}, {"Mbps", 1e6}, {"Gbps", 1e9}, {"Tbps", 1e12}},
	}
	packetRates = &measure{
		name: "packet rate", base: "1pps", example: "100kpps", max: math.MaxUint64,
		units: []unit{{"pps", 1}, {"kpps", 1e3}, {"Mpps", 1e6}, {"Gpps", 1e9}},
	}
	lengths = &measure{
		name: "length", base: "1m", example: "40km", max: math.MaxInt64,
		units: []unit{{"m", 1}, {"km", 1e3}},
	}
	sizes = &measure{
		name: "size", base: "1 byte", example: "512Mi", max: math.MaxInt64,
		units: []unit{
			{"", 1}, {"k", 1e3}, {"Ki", 1 << 10}, {"M", 1e6}, {"Mi", 1 << 20},
			{"G", 1e9}, {"Gi", 1 << 30}, {"T", 1e12}, {"Ti", 1 << 40},
		},
	}
)

// ParseDuration reads a duration. Every error of this file's parsers is a *parse.Error
// without a position.
func ParseDuration(s string) (Duration, error) {
	// Keyboards give two code points for µ, both common in the field.
	s = strings.NewReplacer("\u00b5", "u", "\u03bc", "u").Replace(s)
	v, err := durations.parse(s)
	return Duration(v), err
}

// ParseBitrate reads a bit rate.
func ParseBitrate(s string) (Bitrate, error) {
	v, err := bitrates.parse(s)
	return Bitrate(v), err
}

// ParsePacketRate reads a packet rate.
func ParsePacketRate(s string) (PacketRate, error) {
	v, err := packetRates.parse(s)
	return PacketRate(v), err
}

// ParseBytes reads a size. The largest is 2^63−1, the maximum of cgroup files.
func ParseBytes(s string) (Bytes, error) {
	v, err := sizes.parse(s)
	return Bytes(v), err
}

// ParseLength reads a length.
func ParseLength(s string) (Length, error) {
	v, err := lengths.parse(s)
	return Length(v), err
}

// ParseRatio reads a proportion, which must be greater than 0 and less than 1.
func ParseRatio(s string) (Ratio, error) {
	number, percent := strings.CutSuffix(s, "%")
	if !IsDecimal(number, !percent) {
		return 0, &parse.Error{Text: "the ratio " + parse.Quote(s) + " is not a number", Fix: `write something like "1e-4" or "0.01%"`}
	}
	if percent {
		number += "e-2" // exact; a division would round twice
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || v >= 1 {
		return 0, &parse.Error{Text: "the ratio " + parse.Quote(s) + " is not less than 1", Fix: `write a proportion such as "1e-4", or a percentage such as "0.01%"`}
	}
	if v <= 0 {
		return 0, &parse.Error{Text: "the ratio " + parse.Quote(s) + " is not greater than 0", Fix: `write a proportion such as "1e-4"`}
	}
	return Ratio(v), nil
}

// ParsePercentile reads a percentile, which must be greater than 0 and less than 100.
func ParsePercentile(s string) (Percentile, error) {
	number := strings.TrimPrefix(s, "p")
	if !IsDecimal(number, false) {
		return 0, &parse.Error{Text: "the percentile " + parse.Quote(s) + " is not a number", Fix: "write something like 99 or 99.9"}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || v <= 0 || v >= 100 {
		return 0, &parse.Error{Text: "the percentile " + parse.Quote(s) + " is not between 0 and 100", Fix: "write something like 99 or 99.9"}
	}
	return Percentile(v), nil
}

// IsDecimal reports whether s is digits, optionally a fraction and an exponent.
func IsDecimal(s string, exponent bool) bool {
	if len(s) > maxNumberLen {
		return false
	}
	if exponent {
		if i := strings.IndexAny(s, "eE"); i >= 0 {
			power := strings.TrimLeft(s[i+1:], "+-")
			if len(s)-i-1-len(power) > 1 || !IsDigits(power) {
				return false
			}
			s = s[:i]
		}
	}
	whole, fraction, dotted := strings.Cut(s, ".")
	return IsDigits(whole) && (!dotted || IsDigits(fraction))
}

func IsDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

func (d Duration) String() string {
	if d < 0 {
		return "-" + durations.format(uint64(-d))
	}
	if d == 0 {
		return "0s"
	}
	return durations.format(uint64(d))
}

func (b Bitrate) String() string    { return bitrates.format(uint64(b)) }
func (p PacketRate) String() string { return packetRates.format(uint64(p)) }
func (l Length) String() string     { return lengths.format(uint64(l)) }

// String uses the largest binary prefix that divides the size, else the largest decimal
// prefix, else none.
func (b Bytes) String() string {
	best := unit{"", 1}
	for _, u := range sizes.units {
		binary, bestBinary := !isPow10(u.scale), !isPow10(best.scale)
		if b != 0 && uint64(b)%u.scale == 0 && (binary || !bestBinary) {
			best = u
		}
	}
	return strconv.FormatUint(uint64(b)/best.scale, 10) + best.suffix
}

func (r Ratio) String() string {
	if r >= 0.001 || r == 0 {
		return strconv.FormatFloat(float64(r), 'f', -1, 64)
	}
	s := strconv.FormatFloat(float64(r), 'e', -1, 64)
	return strings.Replace(s, "e-0", "e-", 1)
}

func (p Percentile) String() string { return strconv.FormatFloat(float64(p), 'f', -1, 64) }

func (d Duration) MarshalText() ([]byte, error)   { return []byte(d.String()), nil }
func (b Bitrate) MarshalText() ([]byte, error)    { return []byte(b.String()), nil }
func (b Bytes) MarshalText() ([]byte, error)      { return []byte(b.String()), nil }
func (p PacketRate) MarshalText() ([]byte, error) { return []byte(p.String()), nil }
func (l Length) MarshalText() ([]byte, error)     { return []byte(l.String()), nil }
func (r Ratio) MarshalText() ([]byte, error)      { return []byte(r.String()), nil }
func (p Percentile) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

func (d *Duration) UnmarshalText(b []byte) error   { return unmarshal(b, d, ParseDuration) }
func (b *Bitrate) UnmarshalText(t []byte) error    { return unmarshal(t, b, ParseBitrate) }
func (b *Bytes) UnmarshalText(t []byte) error      { return unmarshal(t, b, ParseBytes) }
func (p *PacketRate) UnmarshalText(b []byte) error { return unmarshal(b, p, ParsePacketRate) }
func (l *Length) UnmarshalText(b []byte) error     { return unmarshal(b, l, ParseLength) }
func (r *Ratio) UnmarshalText(b []byte) error      { return unmarshal(b, r, ParseRatio) }
func (p *Percentile) UnmarshalText(b []byte) error { return unmarshal(b, p, ParsePercentile) }

func unmarshal[T any](text []byte, to *T, parse func(string) (T, error)) error {
	v, err := parse(string(text))
	if err != nil {
		return fmt.Errorf("unit string: %w", err)
	}
	*to = v
	return nil
}
