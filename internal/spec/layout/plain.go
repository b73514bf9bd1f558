// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Plain makes text that others wrote harmless on a terminal: control characters,
// which could move the cursor, hide text or type an answer, become "?". Those in
// keep stay.
func Plain(s, keep string) string {
	return strings.Map(func(r rune) rune {
		if commands(r) && !strings.ContainsRune(keep, r) {
			return '?'
		}
		return r
	}, s)
}

// commands reports whether a terminal may take the character for a command.
func commands(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

// PlainJSON is the same JSON text, harmless on a terminal: encoding/json escapes only
// those of such characters that are below the blank. Between values these are space.
func PlainJSON(text []byte) []byte {
	plain := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r < ' ' || !commands(r) {
			plain = utf8.AppendRune(plain, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			plain = fmt.Appendf(plain, `\u%04x`, unit)
		}
	}
	return plain
}

// PlainLines is Plain for text of several lines.
func PlainLines(s string) string { return Plain(strings.ReplaceAll(s, "\r\n", "\n"), "\n\t") }
