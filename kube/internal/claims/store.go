// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/internal/host"
)

// Store is a directory with one directory for each prepared claim.
type Store struct{ dir string }

const (
	fileClaim = "claim.json"
	dirPorts  = "ports"
	// maxClaim bounds the size of a claim that is read back, in bytes.
	maxClaim = 4 << 20
	// lockPause is the time between two tries to get the lock.
	lockPause = 5 * time.Millisecond
)

// Open creates the directory if it is missing. Only root may look into it.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("claims: %w", err)
	}
	return &Store{dir}, nil
}

// Ports is the directory with the sockets of a claim's ports.
func (s *Store) Ports(uid types.UID) string { return filepath.Join(s.dir, string(uid), dirPorts) }

// HeldError says which claim has a port that another claim asks for.
type HeldError struct {
	Port Key
	By   Claim
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("port %s belongs to pod %s on this node: it is free again once that pod has ended", e.Port, e.By.Pod)
}

// Add keeps a claim before anything is made for it. Adding it again changes
// nothing. If another claim has one of its ports, the error is a *HeldError.
func (s *Store) Add(ctx context.Context, c Claim) error {
	if err := checkUID(c.UID); err != nil {
		return err
	}
	return s.locked(ctx, func() error {
		all, err := s.read()
		if err != nil {
			return err
		}
		for i := range c.Ports {
			if held := holder(all, c.UID, c.Key(i)); held != nil {
				return &HeldError{Port: c.Key(i), By: *held}
			}
		}
		if slices.ContainsFunc(all, func(o Claim) bool { return o.UID == c.UID }) {
			return nil
		}
		return s.write(c)
	})
}

// holder is the claim, other than uid, that has the port; nil if none has.
func holder(all []Claim, uid types.UID, port Key) *Claim {
	for i := range all {
		for p := range all[i].Ports {
			if all[i].UID != uid && all[i].Key(p) == port {
				return &all[i]
			}
		}
	}
	return nil
}

// Remove forgets a claim and removes its directory. before runs first, with
// the claims that stay; if it fails, the claim stays, too. Removing a claim
// that is not there is no error.
func (s *Store) Remove(ctx context.Context, uid types.UID, before func(stay []Claim) error) error {
	if err := checkUID(uid); err != nil {
		return err
	}
	return s.locked(ctx, func() error {
		all, err := s.read()
		if err != nil {
			return err
		}
		stay := slices.DeleteFunc(all, func(c Claim) bool { return c.UID == uid })
		if err := before(stay); err != nil {
			return err
		}
		return os.RemoveAll(filepath.Join(s.dir, string(uid)))
	})
}

// Update keeps the claims that change changes.
func (s *Store) Update(ctx context.Context, change func(*Claim) bool) error {
	return s.locked(ctx, func() error {
		all, err := s.read()
		if err != nil {
			return err
		}
		for i := range all {
			if change(&all[i]) {
				err = errors.Join(err, s.write(all[i]))
			}
		}
		return err
	})
}

// Use calls f with all claims, the oldest first, while none can change.
func (s *Store) Use(ctx context.Context, f func([]Claim) error) error {
	return s.locked(ctx, func() error {
		all, err := s.read()
		if err != nil {
			return err
		}
		return f(all)
	})
}

// List returns all claims, the oldest first.
func (s *Store) List(ctx context.Context) (all []Claim, err error) {
	err = s.Use(ctx, func(claims []Claim) error {
		all = claims
		return nil
	})
	return all, err
}

// Peek returns all claims without waiting for a change that is under way. It sees each
// claim as it was before that or as it is after.
func (s *Store) Peek() ([]Claim, error) {
	nothing := func(string) error { return nil }
	return s.list(nothing, nothing)
}

// locked runs f while no other process or goroutine changes the store.
func (s *Store) locked(ctx context.Context, f func() error) error {
	path := filepath.Join(s.dir, ".lock")
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("claims: %w", err)
		}
	}
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("claims: %w", err)
	}
	defer lock.Close()
	for {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f()
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("claims: lock: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("claims: lock: %w", ctx.Err())
		case <-time.After(lockPause):
		}
	}
}

// read returns all claims. It removes what was never written whole, and sets aside what
// cannot be read: no other claim waits for it.
func (s *Store) read() ([]Claim, error) { return s.list(os.RemoveAll, setAside) }

// damagedPrefix begins the names of claims that are set aside, so that none is one.
const damagedPrefix = ".damaged-"

func setAside(dir string) error {
	to := filepath.Join(filepath.Dir(dir), damagedPrefix+filepath.Base(dir))
	return errors.Join(os.RemoveAll(to), os.Rename(dir, to))
}

// list returns all claims. It calls unfinished with each directory that has none, and
// damaged with each whose claim cannot be read.
func (s *Store) list(unfinished, damaged func(dir string) error) ([]Claim, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("claims: %w", err)
	}
	var all []Claim
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), damagedPrefix) {
			continue
		}
		dir := filepath.Join(s.dir, e.Name())
		c, err := readClaim(filepath.Join(dir, fileClaim))
		if err == nil && string(c.UID) != e.Name() {
			err = fmt.Errorf("%s is of claim %q", filepath.Join(dir, fileClaim), c.UID)
		}
		switch {
		case err == nil:
			all = append(all, *c)
			continue
		case errors.Is(err, fs.ErrNotExist):
			err = unfinished(dir)
		default:
			slog.Warn("claim set aside: it cannot be read", "claim", e.Name(), "error", err)
			err = damaged(dir)
		}
		if err != nil {
			return nil, fmt.Errorf("claim %s: %w", e.Name(), err)
		}
	}
	slices.SortFunc(all, func(a, b Claim) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(string(a.UID), string(b.UID)))
	})
	return all, nil
}

func readClaim(path string) (*Claim, error) {
	data, err := host.ReadRegular(path, maxClaim)
	if err != nil {
		return nil, err
	}
	var c Claim
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("%s is malformed: %w", path, err)
	}
	return &c, nil
}

// write creates the claim's directory. The claim itself comes last, so a
// directory without one was never finished.
func (s *Store) write(c Claim) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	dir := filepath.Join(s.dir, string(c.UID))
	// The pod sees the directory of the sockets alone; each socket is its user's.
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.MkdirAll(s.Ports(c.UID), 0o755)); err != nil {
		return fmt.Errorf("claims: %w", err)
	}
	unfinished := filepath.Join(dir, fileClaim+".new")
	if err := os.WriteFile(unfinished, data, 0o600); err != nil {
		return fmt.Errorf("claims: %w", err)
	}
	return os.Rename(unfinished, filepath.Join(dir, fileClaim))
}

var uidPattern = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// checkUID refuses a UID that is not safe as the name of a directory.
func checkUID(uid types.UID) error {
	if !uidPattern.MatchString(string(uid)) {
		return fmt.Errorf("claim %q: not a UID", uid)
	}
	return nil
}
