// SPDX-License-Identifier: Apache-2.0

package units

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/spec/parse"
)

// maxNumberLen limits the text of a number, so that no input is expensive.
const maxNumberLen = 32

// unit is one suffix of a quantity and its number of base units.
type unit struct {
	suffix string
	scale  uint64
}

// measure is a kind of quantity. The grammar of its text is
//
//	quantity = digit {digit} ["." digit {digit}] suffix
//
// without blanks, signs or exponents. The value must be a whole number of base units,
// so that text and value convert without loss.
type measure struct {
	name    string // "duration", as errors print it
	base    string // the indivisible unit: "1ns"
	example string
	units   []unit // ascending; the first is the base unit
	max     uint64
}

// parse converts text to base units.
func (m *measure) parse(text string) (uint64, error) {
	number, suffix, err := m.split(text)
	if err != nil {
		return 0, err
	}
	scale, err := m.scale(text, number, suffix)
	if err != nil {
		return 0, err
	}
	whole, fraction, _ := strings.Cut(number, ".")
	fraction = strings.TrimRight(fraction, "0")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return 0, nil
	}
	if len(fraction) >= len(pow10) {
		return 0, m.fault(text, "is finer than "+m.base, "write fewer digits")
	}
	mantissa, parseErr := strconv.ParseUint(digits, 10, 64)
	if parseErr != nil {
		return 0, m.tooLarge(text)
	}
	hi, lo := bits.Mul64(mantissa, scale)
	divisor := pow10[len(fraction)]
	if hi >= divisor {
		return 0, m.tooLarge(text)
	}
	value, rest := bits.Div64(hi, lo, divisor)
	if value > m.max {
		return 0, m.tooLarge(text)
	}
	if rest != 0 {
		return 0, m.fault(text, "is finer than "+m.base, "write a whole number of "+m.base)
	}
	return value, nil
}

// split separates the number from its suffix.
func (m *measure) split(text string) (number, suffix string, err error) {
	if text == "" {
		return "", "", m.fault(text, "is empty", m.hint())
	}
	if len(text) > maxNumberLen {
		return "", "", m.fault(text, "is too long", m.hint())
	}
	if text[0] == '-' {
		return "", "", m.fault(text, "is negative", m.hint())
	}
	end := 0
	for end < len(text) && (isDigit(text[end]) || text[end] == '.') {
		end++
	}
	number, suffix = text[:end], text[end:]
	whole, fraction, dotted := strings.Cut(number, ".")
	if whole == "" || dotted && (fraction == "" || strings.Contains(fraction, ".")) {
		return "", "", m.fault(text, "is not a number with a unit", m.hint())
	}
	return number, suffix, nil
}

// scale finds the suffix, or suggests the one that was meant.
func (m *measure) scale(text, number, suffix string) (uint64, error) {
	for _, u := range m.units {
		if u.suffix == suffix {
			return u.scale, nil
		}
	}
	if suffix == "" {
		return 0, m.fault(text, "has no unit", fmt.Sprintf("add one of %s, as in %q", strings.Join(m.suffixes(), ", "), m.example))
	}
	trimmed := strings.TrimSpace(suffix)
	fix := "the units are " + strings.Join(m.suffixes(), ", ")
	if near := parse.Similar(trimmed, m.suffixes()); near != "" {
		fix = fmt.Sprintf("did you mean %q?", number+near)
		if near == trimmed {
			return 0, m.fault(text, "has a space next to its unit", fix)
		}
	}
	return 0, m.fault(text, "has the unknown unit "+parse.Quote(trimmed), fix)
}

// format writes base units as the shortest text that parses to the same value.
func (m *measure) format(value uint64) string {
	u := m.units[0]
	for _, candidate := range m.units {
		if value >= candidate.scale && isPow10(candidate.scale) {
			u = candidate
		}
	}
	whole := strconv.FormatUint(value/u.scale, 10)
	rest := value % u.scale
	if rest == 0 {
		return whole + u.suffix
	}
	fraction := strconv.FormatUint(u.scale+rest, 10)[1:]
	return whole + "." + strings.TrimRight(fraction, "0") + u.suffix
}

func (m *measure) tooLarge(text string) error {
	return m.fault(text, "is too large", "the largest is "+m.format(m.max))
}

func (m *measure) fault(text, what, fix string) error {
	return &parse.Error{Text: fmt.Sprintf("the %s %s %s", m.name, parse.Quote(text), what), Fix: fix}
}

func (m *measure) hint() string { return fmt.Sprintf("write something like %q", m.example) }

func (m *measure) suffixes() []string {
	var names []string
	for _, u := range m.units {
		if u.suffix != "" {
			names = append(names, u.suffix)
		}
	}
	return names
}

// pow10 holds every power of ten that a uint64 can hold.
var pow10 = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

func isPow10(n uint64) bool {
	for _, p := range pow10 {
		if p == n {
			return true
		}
	}
	return false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
