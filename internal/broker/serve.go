// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/broker/wire"
	"github.com/drayage/dray/internal/host"
)

// broker serves the links of one directory.
type broker struct {
	journal *journal
	log     *logger
	ledger  *ledger
	boot    string // of the host

	captures atomic.Int32 // under way

	mu    sync.Mutex // guards links; held while one is added, removed or moved
	links map[string]*link
}

// Serve serves the links that the journal of o.Dir knows, and those that are
// added, until ctx ends. Then, or when it is killed, traffic goes on; the next
// Serve adopts what is live. It is an error if another broker serves o.Dir.
func Serve(ctx context.Context, o Options) error {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	unlock, err := lock(filepath.Join(o.Dir, "lock"))
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	defer unlock()
	boot, err := host.BootID()
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	j, err := openJournal(o.Dir)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	b := &broker{journal: j, log: &logger{w: o.Log}, boot: boot, links: map[string]*link{}}
	b.ledger = newLedger(b.log)
	defer b.ledger.close()
	defer b.leave()
	b.resume()
	c, err := newControl(b, o.Dir)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	defer c.close()
	if o.Ready != nil {
		o.Ready()
	}
	return c.serve(ctx)
}

// lock makes sure that one broker serves a directory.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: another broker serves this directory: %w", path, err), f.Close())
	}
	return func() { f.Close() }, nil
}

// resume serves what the journal knows. What cannot be served is logged: the
// other links must not suffer from it.
func (b *broker) resume() {
	entries, err := b.journal.load()
	if err != nil {
		b.log.print("%v", err)
	}
	for _, e := range entries {
		if err := b.start(*e); err != nil {
			b.log.print("%v", err)
		}
	}
}

// start serves a link.
func (b *broker) start(e entry) error {
	l, err := newLink(b, e)
	if err != nil {
		return err
	}
	b.links[e.Link.Name] = l
	go l.run()
	return nil
}

// leave ends all links, and lets their ends expect a broker again.
func (b *broker) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.links {
		_ = l.call(context.Background(), func() { l.part(wire.ByeRestart, false) })
		<-l.ended
	}
}

// add serves a new link.
func (b *broker) add(ctx context.Context, spec Link) error {
	if err := spec.check(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.links[spec.Name]; l != nil {
		return l.same(ctx, spec)
	}
	for _, l := range b.links {
		if l.owns(spec.Ends) {
			return fmt.Errorf("link %s: one of its sockets is that of another link", spec.Name)
		}
	}
	// A link that could not be served when the broker started has had generations.
	e := entry{Link: spec, Generation: b.journal.generation(spec.Name)}
	if err := b.start(e); err != nil {
		return err
	}
	if err := b.journal.save(&e); err != nil {
		return errors.Join(err, b.removeLocked(ctx, spec.Name))
	}
	return nil
}

// owns reports whether one of the sockets is this link's. Sockets never change.
func (l *link) owns(ends []End) bool {
	return slices.ContainsFunc(ends, func(e End) bool { return slices.Contains(l.sockets, e.Socket) })
}

// same is no error where the link is what it is to be.
func (l *link) same(ctx context.Context, spec Link) error {
	var differs bool
	if err := l.call(ctx, func() { differs = !l.entry.Link.equal(&spec) }); err != nil {
		return err
	}
	if differs {
		return fmt.Errorf("link %s is there already, and is another: relink moves it", spec.Name)
	}
	return nil
}

// remove ends a link.
func (b *broker) remove(ctx context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.removeLocked(ctx, name)
}

func (b *broker) removeLocked(ctx context.Context, name string) error {
	l := b.links[name]
	if l == nil {
		return nil
	}
	if err := l.call(ctx, func() { l.part(wire.ByeClosing, true) }); err != nil && !errors.Is(err, errRemoved) {
		return err
	}
	<-l.ended
	delete(b.links, name)
	return b.journal.remove(name)
}

// relink moves a link.
func (b *broker) relink(ctx context.Context, spec Link) error {
	if err := spec.check(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.links[spec.Name]
	if l == nil {
		return fmt.Errorf("there is no link %s to move", spec.Name)
	}
	var moved error
	if err := l.call(ctx, func() { moved = l.relink(spec) }); err != nil {
		return err
	}
	return moved
}

// status is how all links are, by name.
func (b *broker) status(ctx context.Context) ([]LinkStatus, error) {
	all := []LinkStatus{}
	for _, l := range b.sorted() {
		var s LinkStatus
		err := l.call(ctx, func() { s = l.status() })
		if errors.Is(err, errRemoved) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// sorted is all links by name.
func (b *broker) sorted() []*link {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*link
	for _, name := range slices.Sorted(maps.Keys(b.links)) {
		all = append(all, b.links[name])
	}
	return all
}
