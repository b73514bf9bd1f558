// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// lockPatience bounds the wait for another preparation: a driver may take seconds.
const lockPatience = time.Minute

// Files of a state directory.
const (
	fileLock    = ".preparing"
	fileJournal = ".prepared"
)

// lock keeps other preparations away.
func lock(ctx context.Context, stateDir string) (j journal, unlock func(), err error) {
	if err := host.MakeStateDir(stateDir); err != nil {
		return j, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	unlock, err = host.LockFile(ctx, filepath.Join(stateDir, fileLock), unix.LOCK_EX)
	if err != nil {
		return j, nil, fmt.Errorf("lock the preparation of this host: %w", err)
	}
	return journal{filepath.Join(stateDir, fileJournal)}, unlock, nil
}

// Apply plans under a lock and changes what the plan says, each setting after its
// former value is in the journal. It stops at the first failure; Revert undoes what
// was done.
func (s *System) Apply(ctx context.Context, stateDir string, r Request) (*Report, error) {
	j, unlock, err := lock(ctx, stateDir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	report, err := s.Plan(r)
	if err != nil {
		return nil, err
	}
	former, err := j.load(s.bootID)
	if err != nil {
		return nil, err
	}
	for i := range report.Changes {
		if err := ctx.Err(); err != nil {
			return report, err
		}
		if c := &report.Changes[i]; c.Outcome == Planned {
			if err := s.apply(j, former, c); err != nil {
				c.Outcome, c.Reason = Failed, err.Error()
				return report, fmt.Errorf("%s: %w; `dray doctor --revert` undoes what was changed", c.Setting, err)
			}
		}
	}
	return report, nil
}

func (s *System) apply(j journal, former []entry, c *Change) error {
	e := entry{Boot: s.bootID, Key: c.Key, From: original(former, c), To: c.To}
	if err := j.add(e); err != nil {
		return err
	}
	s.at("journaled")
	err := s.change(c.Key, c.To)
	if managed(c.Key, err) {
		c.Outcome, c.Reason = Left, "the kernel manages this interrupt itself"
		return nil
	}
	if err != nil {
		return err
	}
	s.at("changed")
	now, err := s.value(c.Key)
	if err != nil {
		return err
	}
	c.Outcome = Changed
	if now != c.To {
		c.Outcome, c.Reason = Partly, fmt.Sprintf("the kernel made %s of it", now)
		if c.Key.Kind == kindHugePages {
			c.Reason = fmt.Sprintf("the kernel has memory for %s only; at boot there is more: see the command line", now)
		}
	}
	e.To, e.Done = now, true
	if err := j.add(e); err != nil {
		return err
	}
	s.at("noted")
	return nil
}

// original is the value before our first change, if what the setting has now is ours.
func original(former []entry, c *Change) string {
	i := slices.IndexFunc(former, func(e entry) bool { return e.Key == c.Key })
	if i >= 0 && former[i].ours(c.From) {
		return former[i].From
	}
	return c.From
}

// managed reports whether the kernel refused to move an interrupt: a driver asked it
// to spread its interrupts, or the interrupt belongs to one CPU.
func managed(k Key, err error) bool {
	return k.Kind == kindInterrupt && (errors.Is(err, unix.EIO) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOENT))
}

// ours reports whether a value is what the change made, or may have made before it
// was cut short.
func (e entry) ours(now string) bool {
	return now == e.To || !e.Done && e.Key.between(e.From, e.To, now)
}
