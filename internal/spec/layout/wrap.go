// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"strings"
	"unicode/utf8"
)

// Wrap breaks text at blanks into lines of at most width characters; 0 means no
// limit. Leading blanks are the indent of every line. A longer word is broken, if
// possible after an underscore.
func Wrap(text string, width int) []string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	return Hang(indent, indent, strings.TrimSpace(text), width)
}

// Hang wraps text with first before its first line and rest before the others.
func Hang(first, rest, text string, width int) []string {
	if width <= 0 {
		return []string{strings.TrimRight(first+text, " ")}
	}
	var lines []string
	lead, line := first, ""
	flush := func() {
		lines = append(lines, strings.TrimRight(lead+line, " "))
		lead, line = rest, ""
	}
	room := func() int { return max(width-utf8.RuneCountInString(lead), 1) }
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > room() {
			flush()
		}
		for utf8.RuneCountInString(word) > room() {
			line = string([]rune(word)[:room()])
			if at := strings.LastIndex(line, "_"); at >= 0 {
				line = line[:at+1]
			}
			word = word[len(line):]
			flush()
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" || len(lines) == 0 {
		flush()
	}
	return lines
}

// Prose reflows hand-wrapped text. Neighbouring lines that begin in the first column
// are one paragraph; a line that begins with a blank stands alone. Its continuation
// aligns with the text after its last gap of two blanks.
func Prose(text string, width int) string {
	var lines []string
	paragraph := ""
	flush := func() {
		if paragraph != "" {
			lines = append(lines, Wrap(paragraph, width)...)
			paragraph = ""
		}
	}
	for _, line := range strings.Split(strings.ReplaceAll(text, "\t", "    "), "\n") {
		switch {
		case line == "":
			flush()
			lines = append(lines, "")
		case strings.HasPrefix(line, " "):
			flush()
			lines = append(lines, hangingLine(line, width)...)
		default:
			paragraph = strings.TrimSpace(paragraph + " " + line)
		}
	}
	flush()
	return strings.Join(lines, "\n")
}

// hangingLine wraps one line of a list or of a two-column table.
func hangingLine(line string, width int) []string {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	at := indent
	if i := strings.LastIndex(line[indent:], gap); i >= 0 {
		at = indent + i + len(gap)
	}
	lead := line[:at]
	return Hang(lead, strings.Repeat(" ", utf8.RuneCountInString(lead)), line[at:], width)
}

// longestWord is the smallest width at which Wrap breaks no word of the text.
func longestWord(text string) int {
	longest := 0
	for _, word := range strings.Fields(text) {
		for _, piece := range strings.SplitAfter(word, "_") {
			longest = max(longest, utf8.RuneCountInString(piece))
		}
	}
	return longest + len(text) - len(strings.TrimLeft(text, " "))
}
