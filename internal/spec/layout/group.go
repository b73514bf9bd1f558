// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"strings"
)

// How much Groups shows: a reader has to begin somewhere, and more does not help.
const (
	mostGroups  = 8
	mostInGroup = 5
)

// Item is a line in a group, such as a fault of a function.
type Item struct{ Group, Text string }

// Groups lists items below the names of their groups, in order of first appearance, and
// counts the omitted ones. An item without a group, or alone in its group, gets no
// group heading.
func Groups(items []Item) []string {
	var order []string
	texts := map[string][]string{}
	for _, item := range items {
		if _, ok := texts[item.Group]; !ok {
			order = append(order, item.Group)
		}
		texts[item.Group] = append(texts[item.Group], item.Text)
	}
	var lines []string
	left := len(items)
	for _, group := range order[:min(len(order), mostGroups)] {
		lines = append(lines, groupLines(group, texts[group])...)
		left -= len(texts[group])
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("and %d more, in %d others", left, len(order)-mostGroups))
	}
	return lines
}

func groupLines(group string, texts []string) []string {
	var lines []string
	indent := ""
	if group != "" && len(texts) > 1 {
		lines, indent = []string{group + ":"}, "  "
	}
	for _, text := range texts[:min(len(texts), mostInGroup)] {
		lines = append(lines, indent+strings.ReplaceAll(text, "\n", "\n"+indent))
	}
	if more := len(texts) - mostInGroup; more > 0 {
		lines = append(lines, fmt.Sprintf("%sand %d more", indent, more))
	}
	return lines
}
