// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"
)

// ansi matches the colour sequences that some programs print even into a pipe
// (ECMA-48 CSI … m).
var ansi = regexp.MustCompile("\x1b\\[[0-9;]*m")

func stripANSI(out []byte) []byte { return ansi.ReplaceAll(out, nil) }

// maxRaw bounds the program output in a record, in bytes.
const maxRaw = 64 << 10

// raw is a program's output as stored in a record: without colours, and without
// its middle if it is long.
func raw(parts ...[]byte) string {
	var all []string
	for _, part := range parts {
		if text := strings.TrimSpace(strings.ToValidUTF8(string(stripANSI(part)), "?")); text != "" {
			all = append(all, text)
		}
	}
	text := strings.Join(all, "\n\n")
	if len(text) <= maxRaw {
		return text
	}
	cut := len(text) - maxRaw
	return strings.ToValidUTF8(text[:maxRaw/2], "") +
		fmt.Sprintf("\n… %d bytes left out …\n", cut) +
		strings.ToValidUTF8(text[len(text)-maxRaw/2:], "")
}

// maxRate bounds every rate that a program may report: anything above is garbage.
const maxRate = 1e15

// rate checks a rate that a program printed and rounds it.
func rate(name string, v float64) (uint64, error) {
	if math.IsNaN(v) || v < 0 || v > maxRate {
		return 0, fmt.Errorf("%s of %v is impossible", name, v)
	}
	return uint64(math.Round(v)), nil
}

// perSecond is n per d as a rate; 0 if nothing took no time.
func perSecond(n float64, d time.Duration) uint64 {
	if d <= 0 {
		return 0
	}
	v := math.Round(n / d.Seconds())
	if v > maxRate {
		return 0
	}
	return uint64(v)
}

// seconds checks a time in seconds that a program printed.
func seconds(name string, v float64) (time.Duration, error) {
	if math.IsNaN(v) || v < 0 || v > 1e6 {
		return 0, fmt.Errorf("%s of %v s is impossible", name, v)
	}
	return time.Duration(math.Round(v * float64(time.Second))), nil
}

// wholeSeconds rounds up: some programs accept no fractions.
func wholeSeconds(d time.Duration) int {
	return max(1, int(math.Ceil(d.Seconds())))
}
