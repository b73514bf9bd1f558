// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Schema is the version of a bench's output document.
const Schema = 1

// Document is a bench's output for programs, such as out/bench.json.
type Document struct {
	Schema  int     `json:"schema"`
	Figures []Entry `json:"figures"`
}

// Entry is one figure. Value is null, with a reason in Missing, if it could not be measured.
type Entry struct {
	Group   string        `json:"group"`
	Name    string        `json:"name"`
	Unit    string        `json:"unit"`
	Value   *float64      `json:"value"` // median of the rounds, or the quantile in the name
	Missing string        `json:"missing,omitempty"`
	Low     float64       `json:"low"` // its 95 % interval
	High    float64       `json:"high"`
	Samples int           `json:"samples"`
	Limit   *RatioEntry   `json:"limit,omitempty"`
	Peers   []RatioEntry  `json:"peers"` // figures of the same group and unit
	Targets []TargetEntry `json:"targets,omitempty"`
	Marks   string        `json:"marks"`
}

// RatioEntry is the ratio of two figures, with its 95 % interval.
type RatioEntry struct {
	Name  string  `json:"name"`
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// TargetEntry is a target for a ratio.
type TargetEntry struct {
	RatioEntry
	Target  float64 `json:"target"`
	AtMost  bool    `json:"at_most"`
	Outcome string  `json:"outcome"`
}

// Document converts the figures for programs.
func (s *Figures) Document() Document {
	d := Document{Schema: Schema, Figures: []Entry{}}
	for _, f := range s.list {
		d.Figures = append(d.Figures, s.entry(f))
	}
	return d
}

func (s *Figures) entry(f *Figure) Entry {
	e := Entry{Group: f.Group, Name: f.Name, Unit: f.Unit, Peers: []RatioEntry{}}
	e.Marks = strings.Join(slices.Concat(s.marks, f.marks), "; ")
	if !f.Measured() {
		e.Missing = f.whyMissing()
		return e
	}
	value := f.estimate()
	e.Value, e.Low, e.High, e.Samples = &value.Value, value.CI.Low, value.CI.High, value.N
	if r, ok := f.to(f.limit); ok {
		e.Limit = &RatioEntry{f.limit.Name, r.value, r.low, r.high}
	}
	for _, peer := range s.list {
		if peer == f || peer.Group != f.Group || peer.Unit != f.Unit {
			continue
		}
		if r, ok := f.to(peer); ok {
			e.Peers = append(e.Peers, RatioEntry{peer.Name, r.value, r.low, r.high})
		}
	}
	for _, t := range f.targets {
		if r, ok := f.to(t.of); ok {
			e.Targets = append(e.Targets, TargetEntry{RatioEntry{t.of.Name, r.value, r.low, r.high}, t.value, t.atMost, t.outcome(f.rounds(), r)})
		}
	}
	return e
}

// Write writes the document to a file; an empty path writes nothing.
func (d Document) Write(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Merge adds figures to the document in a file, replacing all figures of their groups.
func Merge(path string, figures []Entry) error {
	d := Document{Schema: Schema}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(text, &d); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if d.Schema != Schema {
			return fmt.Errorf("%s: schema %d, want %d", path, d.Schema, Schema)
		}
	}
	d.Figures = slices.DeleteFunc(d.Figures, func(old Entry) bool {
		return slices.ContainsFunc(figures, func(e Entry) bool { return e.Group == old.Group })
	})
	d.Figures = append(d.Figures, figures...)
	return d.Write(path)
}
