// SPDX-License-Identifier: Apache-2.0

package style

import (
	"fmt"
	"regexp"
	"strings"
)

// Limits of prose.
const (
	maxSentence = 35 // words
	// maxWhere is how many times "where" may stand for each "if" or "when": a
	// condition is "if", a time "when", and only a place "where".
	maxWhere = 0.5
	// maxSubject is the length of a commit's first line, in characters.
	maxSubject = 72
)

var (
	codeSpan  = regexp.MustCompile("`[^`]*`")
	linkTo    = regexp.MustCompile(`\]\([^)]*\)`)
	htmlTag   = regexp.MustCompile(`<[^>]*>`)
	listItem  = regexp.MustCompile(`^\s*([-*]|\d+\.) `)
	sentence  = regexp.MustCompile(`[.!?:;][)*"]* +`)
	word      = regexp.MustCompile(`\p{L}[\p{L}\p{N}'’-]*`)
	where     = regexp.MustCompile(`(?i)\bwhere\b`)
	ifOrWhen  = regexp.MustCompile(`(?i)\b(if|when)\b`)
	goodTitle = regexp.MustCompile(`^[A-Za-z0-9/_.,{}*-]+: \S`)
)

// paragraph is a run of prose: a paragraph, an item of a list, a cell of a table.
type paragraph struct {
	line int
	text string
}

// paragraphs are the prose of a Markdown file, without code, links and markup.
func paragraphs(markdown string) []paragraph {
	var all []paragraph
	fenced, open := false, false
	for i, line := range strings.Split(markdown, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			fenced, open = !fenced, false
			continue
		}
		switch {
		case fenced:
		case trimmed == "" || strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "<"):
			open = false
		case strings.HasPrefix(trimmed, "|"):
			open = false
			for _, cell := range strings.Split(trimmed, "|") {
				all = append(all, paragraph{i + 1, plain(cell)})
			}
		case open && !listItem.MatchString(line):
			all[len(all)-1].text += " " + plain(trimmed)
		default:
			all, open = append(all, paragraph{i + 1, plain(listItem.ReplaceAllString(line, ""))}), true
		}
	}
	return all
}

// plain is text as it is read: a code span counts as one word.
func plain(text string) string {
	text = codeSpan.ReplaceAllString(text, "code")
	text = linkTo.ReplaceAllString(text, "]")
	return strings.TrimSpace(htmlTag.ReplaceAllString(text, ""))
}

// longSentences returns one sentence for each sentence of a Markdown file that is
// too long to read once.
func longSentences(name, markdown string) []string {
	var broken []string
	for _, p := range paragraphs(markdown) {
		for _, s := range sentence.Split(p.text, -1) {
			if n := len(word.FindAllString(s, -1)); n > maxSentence {
				broken = append(broken, fmt.Sprintf("%s:%d: a sentence of %d words (limit %d): %.60s…", name, p.line, n, maxSentence, s))
			}
		}
	}
	return broken
}

// wheres counts "where" on one side, "if" and "when" on the other.
func wheres(prose string) (places, conditions int) {
	return len(where.FindAllString(prose, -1)), len(ifOrWhen.FindAllString(prose, -1))
}

// subject describes what is wrong with a commit's first line; empty: nothing.
func subject(line string) string {
	switch n := len([]rune(line)); {
	case n > maxSubject:
		return fmt.Sprintf("%q has %d characters (limit %d)", line, n, maxSubject)
	case !goodTitle.MatchString(line):
		return fmt.Sprintf("%q does not read `area: what changes`", line)
	}
	return ""
}
