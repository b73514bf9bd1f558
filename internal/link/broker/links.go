// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/drayage/dray/internal/link/broker/wire"
)

// claim gives the caller the exclusive right to add, remove or move the link.
// A link that allocates gigabytes is slow, and others must not wait for it.
func (b *broker) claim(ctx context.Context, name string) (release func(), err error) {
	for {
		b.mu.Lock()
		other := b.busy[name]
		if other == nil {
			mine := make(chan struct{})
			b.busy[name] = mine
			b.mu.Unlock()
			return func() {
				b.mu.Lock()
				defer b.mu.Unlock()
				delete(b.busy, name)
				close(mine)
			}, nil
		}
		b.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// find returns the link of that name; nil if there is none.
func (b *broker) find(name string) *link {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.links[name]
}

// start begins to serve a link.
func (b *broker) start(e entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.reserve(&e.Link); err != nil {
		return err
	}
	l, err := newLink(b, e)
	if err != nil {
		delete(b.sockets, e.Link.Name)
		return err
	}
	b.links[e.Link.Name] = l
	go l.run()
	return nil
}

// reserve keeps the sockets of a link's configuration from other links. The
// caller holds b.mu.
func (b *broker) reserve(l *Link) error {
	var mine []string
	for i := range l.Ends {
		if l.Ends[i].here() {
			mine = append(mine, l.Ends[i].Socket)
		}
	}
	for name, others := range b.sockets {
		if name != l.Name && slices.ContainsFunc(others, func(s string) bool { return slices.Contains(mine, s) }) {
			return fmt.Errorf("link %s: one of its sockets belongs to link %s", l.Name, name)
		}
	}
	b.sockets[l.Name] = mine
	return nil
}

// leave ends all links, and tells their ends to expect a new broker.
func (b *broker) leave() {
	var all sync.WaitGroup
	for _, l := range b.sorted() {
		all.Add(1)
		go func() {
			defer all.Done()
			_ = l.call(context.Background(), func() { l.part(wire.ByeRestart, false) })
			<-l.ended
		}()
	}
	all.Wait()
}

// add serves a new link.
func (b *broker) add(ctx context.Context, spec Link) error {
	if err := spec.check(); err != nil {
		return err
	}
	release, err := b.claim(ctx, spec.Name)
	if err != nil {
		return err
	}
	defer release()
	if l := b.find(spec.Name); l != nil {
		return l.same(ctx, spec)
	}
	// A link that the broker could not resume already had generations.
	generation, err := b.journal.generation(spec.Name)
	if err != nil {
		return err
	}
	e := entry{Link: spec, Generation: generation}
	if err := b.start(e); err != nil {
		return err
	}
	if err := b.journal.save(&e); err != nil {
		return errors.Join(err, b.end(ctx, spec.Name))
	}
	return nil
}

// same returns nil if the link already has this configuration.
func (l *link) same(ctx context.Context, spec Link) error {
	var differs bool
	if err := l.call(ctx, func() { differs = !l.entry.Link.equal(&spec) }); err != nil {
		return err
	}
	if differs {
		return fmt.Errorf("link %s already exists with other properties: move it with relink", spec.Name)
	}
	return nil
}

// remove ends a link.
func (b *broker) remove(ctx context.Context, name string) error {
	release, err := b.claim(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	return b.end(ctx, name)
}

// end removes a claimed link.
func (b *broker) end(ctx context.Context, name string) error {
	l := b.find(name)
	if l == nil {
		return b.journal.remove(name) // it could not be resumed, and must not be later
	}
	if err := l.call(ctx, func() { l.part(wire.ByeClosing, true) }); err != nil && !errors.Is(err, errRemoved) {
		return err
	}
	<-l.ended
	b.mu.Lock()
	delete(b.links, name)
	delete(b.sockets, name)
	b.mu.Unlock()
	return b.journal.remove(name)
}

// relink moves a link.
func (b *broker) relink(ctx context.Context, spec Link) error {
	if err := spec.check(); err != nil {
		return err
	}
	release, err := b.claim(ctx, spec.Name)
	if err != nil {
		return err
	}
	defer release()
	l := b.find(spec.Name)
	if l == nil {
		return fmt.Errorf("no link %s to move", spec.Name)
	}
	return b.move(ctx, l, spec)
}

// move moves a claimed link. It keeps the sockets of both configurations
// until it is known which of them holds.
func (b *broker) move(ctx context.Context, l *link, to Link) error {
	b.mu.Lock()
	before := b.sockets[to.Name]
	err := b.reserve(&to)
	after := b.sockets[to.Name]
	b.sockets[to.Name] = append(slices.Clone(before), after...)
	b.mu.Unlock()
	if err != nil {
		return err
	}
	var moved error
	if err := l.call(ctx, func() { moved = l.relink(to) }); err != nil {
		return err // it may still move
	}
	if moved != nil {
		after = before
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sockets[to.Name] = after
	return moved
}

// statusTime bounds how long a status waits for the links, which it asks in parallel.
const statusTime = 500 * time.Millisecond

// status is the state of all links, sorted by name. For a link that does not
// answer in time, it is the last status.
func (b *broker) status(ctx context.Context) ([]LinkStatus, error) {
	deadline, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	links := b.sorted()
	answers := make([]<-chan struct{}, len(links))
	for i, l := range links {
		answers[i] = l.askStatus()
	}
	all := []LinkStatus{}
	for i, l := range links {
		select {
		case <-answers[i]:
		case <-l.ended:
			continue
		case <-deadline.Done():
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		all = append(all, l.latest(answers[i]))
	}
	return all, nil
}

// sorted returns all links, sorted by name.
func (b *broker) sorted() []*link {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*link
	for _, name := range slices.Sorted(maps.Keys(b.links)) {
		all = append(all, b.links[name])
	}
	return all
}
