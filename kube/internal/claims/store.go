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
		dir := filepath.Join(s.dir, string(uid))
		return errors.Join(os.RemoveAll(dir), os.RemoveAll(aside(dir)))
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
// claim as it was before that or as it is after. It leaves damaged ones to others.
func (s *Store) Peek() ([]Claim, error) {
	nothing := func(string) error { return nil }
	return s.list(repair{nothing, func(string, error) error { return nil }, nothing})
}

// locked runs f while no other process or goroutine changes the store.
func (s *Store) locked(ctx context.Context, f func() error) error {
	path := filepath.Join(s.dir, ".lock")
	if err := host.Vacate(path); err != nil {
		return fmt.Errorf("claims: %w", err)
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
func (s *Store) read() ([]Claim, error) {
	return s.list(repair{unfinished: os.RemoveAll, damaged: setAside, whole: makePorts})
}

// repair is what to do with what is not as it was written.
type repair struct {
	unfinished func(dir string) error             // it has no claim
	damaged    func(path string, why error) error // its claim is damaged, or it is no directory
	whole      func(dir string) error             // it has a claim
}

// damagedPrefix begins the names of claims that are set aside, so that none is one.
const damagedPrefix = ".damaged-"

func aside(path string) string {
	return filepath.Join(filepath.Dir(path), damagedPrefix+filepath.Base(path))
}

// setAside moves a damaged claim away. The error says so.
func setAside(path string, why error) error {
	if err := errors.Join(os.RemoveAll(aside(path)), os.Rename(path, aside(path))); err != nil {
		return errors.Join(why, err)
	}
	return fmt.Errorf("%w; it is kept as %s until its pod has ended, whose ports do not work: replace the pod", why, aside(path))
}

// Aside names the claims that are set aside.
func (s *Store) Aside() ([]types.UID, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("claims: %w", err)
	}
	var all []types.UID
	for _, e := range entries {
		if uid, is := strings.CutPrefix(e.Name(), damagedPrefix); is && checkUID(types.UID(uid)) == nil {
			all = append(all, types.UID(uid))
		}
	}
	return all, nil
}

// Forget removes what is set aside of a claim.
func (s *Store) Forget(ctx context.Context, uid types.UID) error {
	if err := checkUID(uid); err != nil {
		return err
	}
	return s.locked(ctx, func() error { return os.RemoveAll(aside(filepath.Join(s.dir, string(uid)))) })
}

// makePorts makes the directory of a claim's ports if it is missing, or something else is
// in its place. The pod sees that directory alone; each socket is its user's.
func makePorts(dir string) error {
	ports := filepath.Join(dir, dirPorts)
	if info, err := os.Lstat(ports); err == nil && info.IsDir() {
		return nil
	}
	return errors.Join(os.RemoveAll(ports), os.MkdirAll(ports, 0o755))
}

// list returns all claims. A damaged claim is logged, and no other claim suffers from it. One that
// cannot be read for now is an error: its pod still needs it. Names that are no UID are skipped.
func (s *Store) list(r repair) ([]Claim, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("claims: %w", err)
	}
	var all []Claim
	for _, e := range entries {
		if checkUID(types.UID(e.Name())) != nil {
			continue
		}
		dir := filepath.Join(s.dir, e.Name())
		c, err := readClaim(dir)
		switch {
		case err == nil:
			all = append(all, *c)
			err = r.whole(dir)
		case errors.Is(err, fs.ErrNotExist):
			err = r.unfinished(dir)
		case host.IsDamaged(err):
			err = r.damaged(dir, err)
		default:
			return nil, fmt.Errorf("claims: %w", err)
		}
		if err != nil {
			slog.Warn("a claim of this node is damaged", "claim", e.Name(), "error", err)
		}
	}
	slices.SortFunc(all, func(a, b Claim) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(string(a.UID), string(b.UID)))
	})
	return all, nil
}

// readClaim reads the claim of a directory. The error is fs.ErrNotExist if that has none.
func readClaim(dir string) (*Claim, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, host.Damaged(fmt.Errorf("%s is not a directory", dir))
	}
	path := filepath.Join(dir, fileClaim)
	var c Claim
	if err := host.ReadJSON(path, maxClaim, &c); err != nil {
		return nil, err
	}
	if string(c.UID) != filepath.Base(dir) {
		return nil, host.Damaged(fmt.Errorf("%s is of claim %q", path, c.UID))
	}
	for i := range c.Ports {
		if err := c.Ports[i].Check(); err != nil {
			return nil, host.Damaged(fmt.Errorf("%s: port %d: %w", path, i, err))
		}
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
	if err := errors.Join(os.MkdirAll(dir, 0o700), makePorts(dir)); err != nil {
		return fmt.Errorf("claims: %w", err)
	}
	if err := host.ReplaceFile(filepath.Join(dir, fileClaim), data, 0o600); err != nil {
		return fmt.Errorf("claims: %w", err)
	}
	return nil
}

var uidPattern = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// checkUID refuses a UID that is not safe as the name of a directory.
func checkUID(uid types.UID) error {
	if !uidPattern.MatchString(string(uid)) {
		return fmt.Errorf("claim %q: not a UID", uid)
	}
	return nil
}
