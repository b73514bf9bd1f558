// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"strings"
	"unicode"
)

// Plain makes text that others wrote harmless on a terminal: control characters,
// which could move the cursor, hide text or type an answer, become "?". Those in
// keep stay.
func Plain(s, keep string) string {
	return strings.Map(func(r rune) rune {
		if (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) && !strings.ContainsRune(keep, r) {
			return '?'
		}
		return r
	}, s)
}

// PlainLines is Plain for text of several lines.
func PlainLines(s string) string { return Plain(strings.ReplaceAll(s, "\r\n", "\n"), "\n\t") }
