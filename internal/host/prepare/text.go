// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"bytes"
	"io"
	"strings"

	"github.com/drayage/dray/internal/spec/cpulist"
	"github.com/drayage/dray/internal/spec/layout"
)

// Text writes a report for people.
func (r *Report) Text(w io.Writer, width int) error {
	var b bytes.Buffer
	if len(r.Changes) > 0 {
		t := layout.Table{Head: []string{"SETTING", "FROM", "TO", "OUTCOME"}}
		for _, c := range r.grouped() {
			state := string(c.Outcome)
			if c.Reason != "" {
				state += ": " + c.Reason
			}
			t.Add(c.Setting, orEmpty(c.From), orEmpty(c.To), state)
		}
		if err := t.Write(&b, width); err != nil {
			return err
		}
	}
	for _, s := range r.Skipped {
		paragraph(&b, width, s.Part+": "+s.Reason)
	}
	for _, note := range r.Notes {
		paragraph(&b, width, "note: "+note)
	}
	if r.Boot != nil {
		b.WriteString("\n")
		paragraph(&b, width, "Only the kernel's command line keeps its scheduler and tick off CPUs, and settings across a reboot:")
		paragraph(&b, width, "  "+r.Boot.Arguments)
		paragraph(&b, width, "To set it, "+r.Boot.Fix+".")
	}
	_, err := w.Write(b.Bytes())
	return err
}

func paragraph(b *bytes.Buffer, width int, text string) {
	b.WriteString(strings.Join(layout.Wrap(text, width), "\n") + "\n")
}

// grouped joins interrupts that are changed alike into one line.
func (r *Report) grouped() []Change {
	var all []Change
	alike := map[Change][]int{} // without what tells interrupts apart
	for _, c := range r.Changes {
		if c.Key.Kind != kindInterrupt {
			all = append(all, c)
			continue
		}
		number := c.Key.Number
		c.Key.Number, c.Setting = 0, ""
		if alike[c] = append(alike[c], number); len(alike[c]) == 1 {
			all = append(all, c)
		}
	}
	for i, c := range all {
		if numbers := alike[c]; len(numbers) > 0 {
			all[i].Setting = "CPUs of interrupts " + cpulist.Format(numbers) // numbers in the form of a list of CPUs
		}
	}
	return all
}
