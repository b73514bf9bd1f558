// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/drayage/dray/internal/host"
)

// Retry interval for a link that cannot be served; it doubles each time.
const (
	resumeFirst = time.Second
	resumeMost  = time.Minute
)

// resume serves the links in the journal. It retries those that cannot be
// served yet, for example for lack of descriptors. stop ends that.
func (b *broker) resume(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	r := resuming{broker: b, logged: map[string]string{}}
	done := make(chan struct{})
	if r.all(ctx) {
		close(done)
	} else {
		go func() {
			defer close(done)
			r.again(ctx)
		}()
	}
	return func() {
		cancel()
		<-done
	}
}

type resuming struct {
	broker *broker
	logged map[string]string // by link: the last error logged
}

// again retries until all links are served.
func (r *resuming) again(ctx context.Context) {
	for wait := resumeFirst; ; wait = min(2*wait, resumeMost) {
		if host.Sleep(ctx, wait) != nil {
			return
		}
		if r.all(ctx) {
			return
		}
	}
}

// all tries each link that is not served, and reports whether none is left. A
// failure is only logged: other links must not suffer from it.
func (r *resuming) all(ctx context.Context) bool {
	names, err := r.broker.journal.names()
	r.tell("", err)
	whole := err == nil
	for _, name := range names {
		err := r.broker.resumeLink(ctx, name)
		r.tell(name, err)
		whole = whole && err == nil
	}
	return whole
}

// tell logs an error if it is new.
func (r *resuming) tell(name string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != r.logged[name] {
		r.broker.log.print("%s; retried at least once a minute", text)
	}
	r.logged[name] = text
}

// resumeLink serves a link from the journal. A damaged entry is set aside: the link can be
// added again.
func (b *broker) resumeLink(ctx context.Context, name string) error {
	release, err := b.claim(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	if b.find(name) != nil {
		return nil
	}
	e, err := b.journal.load(name)
	if errors.Is(err, fs.ErrNotExist) { // it has been removed in the meantime
		return nil
	}
	if host.IsDamaged(err) {
		aside, failed := b.journal.setAside(name)
		b.log.print("%v; it is kept as %s until the link is removed", err, aside)
		return failed
	}
	if err != nil {
		return err
	}
	return b.start(*e)
}
