// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/result/record"
)

var experimentHead = []string{"what", "published", "measured", "interval", "n", "ratio", "marks"}

// measuredText is a line's figure, or why it has none.
func (l *ExperimentLine) measuredText() string {
	switch {
	case l.Measured == nil:
		return "not run here: " + l.NotRun
	case l.Holds != nil && *l.Holds:
		return "holds"
	case l.Holds != nil:
		return "does not hold"
	case l.Most:
		return fmt.Sprintf("%s %s (largest in %d × %v)", three(*l.Measured), l.Unit, l.N, l.Trial)
	}
	return three(*l.Measured) + " " + l.Unit
}

func (l *ExperimentLine) intervalText() string {
	if l.Low == nil || l.High == nil {
		return noFigure
	}
	return three(*l.Low) + "…" + three(*l.High)
}

func (l *ExperimentLine) ratioText() string {
	if l.Ratio == nil {
		return noFigure
	}
	return "× " + three(*l.Ratio)
}

func (l *ExperimentLine) countText() string {
	if l.N == 0 {
		return noFigure
	}
	return fmt.Sprint(l.N)
}

func (l *ExperimentLine) marksText() string {
	marks := slices.Clone(l.Marks)
	if at := slices.Index(marks, record.MarkLoadMissed); at >= 0 && l.Sent != nil {
		marks[at] += " (" + l.Sent.String() + ")"
	}
	text := strings.Join(marks, ", ")
	if l.Failed != "" {
		text = strings.TrimPrefix(text+", some trials failed: "+l.Failed, ", ")
	}
	return orNone(text)
}

// Text prints one table for each experiment; a width of 0 means no limit.
func (d *ExperimentsData) Text(w io.Writer, width int) error {
	for i := range d.Run.Experiments {
		e := &d.Run.Experiments[i]
		fmt.Fprintf(w, "%s: %s (%s)\n", plain(e.Name), plain(e.Title), plain(e.Source))
		t := table{head: experimentHead}
		var without []ExperimentLine
		for _, l := range d.Lines(e) {
			if l.Measured == nil {
				without = append(without, l)
				continue
			}
			t.add(plain(l.Title), orNone(plain(l.Published)), l.measuredText(), l.intervalText(), l.countText(), l.ratioText(), plain(l.marksText()))
		}
		if len(t.rows) > 0 {
			if err := t.write(w, width); err != nil {
				return err
			}
		}
		for _, l := range without {
			fmt.Fprintf(w, "%s (published: %s): %s\n", plain(l.Title), orNone(plain(l.Published)), plain(l.measuredText()))
		}
		for _, c := range d.Claims(e) {
			fmt.Fprintf(w, "claim: %s: %s (%s)", plain(c.Text), c.Word, plain(c.Why))
			if len(c.Marks) > 0 {
				fmt.Fprintf(w, " [%s]", plain(strings.Join(c.Marks, ", ")))
			}
			fmt.Fprintln(w)
		}
		for _, n := range e.Notes {
			fmt.Fprintf(w, "note: %s\n", plain(n))
		}
		fmt.Fprintln(w)
	}
	for _, warning := range d.Warnings {
		fmt.Fprintln(w, plain(warning))
	}
	fmt.Fprintf(w, "The limit of the moment, measured before each row of frames: %s. The generator alone: %s.\n", limitsOf(d.native()), ceilingsOf(d.native()))
	fmt.Fprintf(w, "A/A: %s.\n", plain(d.noise()))
	_, err := fmt.Fprintf(w, "Profile %s, %d rounds, seed %d. Records and page: %s\n", plain(d.Run.Profile), d.Run.Rounds, d.Run.Seed, plain(d.Dir))
	return err
}

// JSON writes the run, its lines and its claims.
func (d *ExperimentsData) JSON(w io.Writer) error {
	out := struct {
		ExperimentsRun
		Directory string           `json:"directory"`
		Warnings  []string         `json:"warnings"`
		Lines     []ExperimentLine `json:"lines"`
		Claims    []ClaimLine      `json:"claims"`
	}{ExperimentsRun: d.Run, Directory: d.Dir, Warnings: append([]string{}, d.Warnings...), Lines: []ExperimentLine{}, Claims: []ClaimLine{}}
	for i := range d.Run.Experiments {
		e := &d.Run.Experiments[i]
		out.Lines = append(out.Lines, d.Lines(e)...)
		out.Claims = append(out.Claims, d.Claims(e)...)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}
