// SPDX-License-Identifier: Apache-2.0

package parse

import "strings"

// maxCandidates limits the names considered for a suggestion, since a hostile file may
// hold many.
const maxCandidates = 500

// Similar is the known name that s probably means, or "".
func Similar(s string, known []string) string {
	if len(s) > 2*maxNameLen {
		return ""
	}
	best := Nearest(s, known)
	if best == "" || distance(s, best) > max(1, len(best)/3) {
		return ""
	}
	return best
}

// nearest is the known name with the fewest edits from s; "" if none is known.
func Nearest(s string, known []string) string {
	best, least := "", -1
	s = s[:min(len(s), 2*maxNameLen)]
	for i, name := range known {
		if i == maxCandidates {
			break
		}
		if n := distance(s, name); least < 0 || n < least {
			best, least = name, n
		}
	}
	return best
}

// distance counts the insertions, deletions, substitutions and swaps of neighbours that
// turn a into b, ignoring case (optimal string alignment).
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// Either joins words as a choice: "a, b or c".
func Either(words []string) string { return listed(words, " or ") }

// All joins words as a list: "a, b and c".
func All(words []string) string { return listed(words, " and ") }

func listed(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	end := len(words) - 1
	return strings.Join(words[:end], ", ") + last + words[end]
}
