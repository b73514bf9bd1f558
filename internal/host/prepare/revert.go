// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Revert gives every setting its former value, in reverse order. It leaves a value
// that something else has set since. A setting that fails stays in the journal.
func (s *System) Revert(ctx context.Context, stateDir string) (*Report, error) {
	j, unlock, err := lock(ctx, stateDir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	entries, err := j.load(s.bootID)
	if err != nil {
		return nil, err
	}
	report := &Report{Changes: []Change{}, Skipped: []Skip{}}
	var failed []entry
	var errs []error
	for _, e := range slices.Backward(entries) {
		c := Change{Key: e.Key, Setting: e.Key.String(), To: e.From}
		if err := s.restore(j, e, &c); err != nil {
			c.Outcome, c.Reason = Failed, err.Error()
			failed = append([]entry{e}, failed...)
			errs = append(errs, fmt.Errorf("%s: %w", c.Setting, err))
		}
		s.at("restored")
		if c.From != c.To { // else it was never changed, or is back
			report.Changes = append(report.Changes, c)
		}
	}
	return report, errors.Join(append(errs, j.keep(failed))...)
}

func (s *System) restore(j journal, e entry, c *Change) error {
	now, err := s.value(e.Key)
	if missing(err) {
		c.Outcome, c.Reason = Left, "it no longer exists"
		return nil
	}
	if err != nil {
		return err
	}
	c.From = now
	switch {
	case now == e.From:
		c.Outcome = Restored
		return nil
	case !e.ours(now):
		c.Outcome, c.Reason = Left, fmt.Sprintf("it is %s, which dray did not set: something else has changed it since", orEmpty(now))
		return nil
	}
	e.Done = false // from now on, a value in between is ours as well
	if err := j.add(e); err != nil {
		return err
	}
	if err := s.change(e.Key, e.From); err != nil {
		return err
	}
	if now, err = s.value(e.Key); err == nil && now != e.From {
		err = fmt.Errorf("the kernel made %s of %s", orEmpty(now), orEmpty(e.From))
	}
	c.Outcome = Restored
	return err
}

// orEmpty shows an empty list of CPUs, which allows all.
func orEmpty(value string) string {
	if value == "" {
		return "all"
	}
	return value
}
