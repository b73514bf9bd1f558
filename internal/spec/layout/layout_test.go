// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	table := Table{Head: []string{"NAME", "STATUS", "DETAIL"}}
	table.Add("a heading that runs across all columns of the table")
	table.Add("  veth", "ok", "")
	table.Add("  ovs", "missing", "the program ovs-vswitchd is not installed")
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, `NAME    STATUS   DETAIL
a heading that runs across all columns of the table
  veth  ok
  ovs   missing  the program ovs-vswitchd is not installed
`},
		{40, `NAME    STATUS   DETAIL
a heading that runs across all columns
of the table
  veth  ok
  ovs   missing  the program
                 ovs-vswitchd is not
                 installed
`},
	} {
		var b strings.Builder
		if err := table.Write(&b, c.width); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, b.String()); diff != "" {
			t.Errorf("width %d:\n%s", c.width, diff)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 8, []string{""}},
		{"  one two three", 8, []string{"  one", "  two", "  three"}},
		{"one two", 0, []string{"one two"}},
		{"ab cdefghijkl m", 5, []string{"ab", "cdefg", "hijkl", "m"}},
		{"µs → µs", 4, []string{"µs →", "µs"}},
	} {
		if diff := cmp.Diff(c.want, Wrap(c.text, c.width)); diff != "" {
			t.Errorf("Wrap(%q, %d):\n%s", c.text, c.width, diff)
		}
	}
}

func TestProse(t *testing.T) {
	text := "One paragraph\non two lines.\n\n  0  the first of the codes\n  10  the next"
	want := "One paragraph on\ntwo lines.\n\n  0  the first of\n     the codes\n  10  the next"
	if diff := cmp.Diff(want, Prose(text, 17)); diff != "" {
		t.Error(diff)
	}
}

func FuzzWrapFits(f *testing.F) {
	f.Add("  one two three", 8)
	f.Fuzz(func(t *testing.T, text string, width int) {
		if width < 1 || width > 200 || !utf8.ValidString(text) {
			return
		}
		indent := len(text) - len(strings.TrimLeft(text, " "))
		for _, line := range Wrap(text, width) {
			if n := utf8.RuneCountInString(line); n > max(width, indent+1) {
				t.Errorf("%q has %d characters, want at most %d", line, n, width)
			}
		}
	})
}

func TestGroups(t *testing.T) {
	var items []Item
	for _, text := range []string{"1", "2", "3", "4", "5", "6", "7"} {
		items = append(items, Item{"function a", text}, Item{"function " + text, "x"})
	}
	items = append(items, Item{"", "alone"}, Item{"function z", "y"})
	want := []string{"function a:", "  1", "  2", "  3", "  4", "  5", "  and 2 more"}
	for range 7 {
		want = append(want, "x")
	}
	if diff := cmp.Diff(append(want, "and 2 more, in 2 others"), Groups(items)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"only"}, Groups([]Item{{"function a", "only"}})); diff != "" {
		t.Error(diff)
	}
}

func TestWrapBreaksLongWords(t *testing.T) {
	for text, want := range map[string][]string{
		"ab cd efghijklm n": {"ab cd", "efghi", "jklm", "n"},
		"ab_cdefg":          {"ab_", "cdefg"},
		"":                  {""},
	} {
		if diff := cmp.Diff(want, Wrap(text, 5)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}
