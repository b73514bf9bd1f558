// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/drayage/dray/internal/spec/units"
)

// timeUnits and sizeUnits are the units of TOSCA's scalar-unit.time, in nanoseconds, and
// scalar-unit.size, in bytes. Their case has no meaning.
var (
	timeUnits = map[string]int64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9, "d": 86400e9}
	sizeUnits = map[string]int64{
		"b": 1, "kb": 1e3, "kib": 1 << 10, "mb": 1e6, "mib": 1 << 20,
		"gb": 1e9, "gib": 1 << 30, "tb": 1e12, "tib": 1 << 40,
	}
)

func readTime(text string) (int64, bool) { return readScalar(text, timeUnits) }
func readSize(text string) (int64, bool) { return readScalar(text, sizeUnits) }

// readScalar reads a number and its unit as a whole number of base units.
func readScalar(text string, known map[string]int64) (int64, bool) {
	text = strings.TrimSpace(text)
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 || !units.IsDecimal(text[:end], false) {
		return 0, false
	}
	scale, ok := known[strings.ToLower(strings.TrimSpace(text[end:]))]
	if !ok {
		return 0, false
	}
	value, ok := new(big.Rat).SetString(text[:end])
	if !ok {
		return 0, false
	}
	value.Mul(value, new(big.Rat).SetInt64(scale))
	if !value.IsInt() || !value.Num().IsInt64() {
		return 0, false
	}
	return value.Num().Int64(), true
}

// writeTime is a duration as a scalar-unit.time: its own text with a space.
func writeTime(d units.Duration) string {
	text := d.String()
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	return text[:end] + " " + text[end:]
}

// writeSize is a size as a scalar-unit.size, in the largest binary unit without a
// fraction.
func writeSize(b units.Bytes) string {
	for _, u := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if scale := units.Bytes(sizeUnits[strings.ToLower(u)]); b > 0 && b%scale == 0 {
			return fmt.Sprintf("%d %s", b/scale, u)
		}
	}
	return fmt.Sprintf("%d B", b)
}

// sizeText is a size for a chain file, with the largest prefix of either kind that needs
// no fraction.
func sizeText(b units.Bytes) string {
	best := b.String()
	for _, prefix := range []string{"k", "M", "G", "T"} {
		scale := units.Bytes(sizeUnits[strings.ToLower(prefix)+"b"])
		if decimal := fmt.Sprintf("%d%s", b/scale, prefix); b > 0 && b%scale == 0 && len(decimal) < len(best) {
			best = decimal
		}
	}
	return best
}
