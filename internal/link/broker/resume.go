// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/drayage/dray/internal/host"
)

// How long a link that cannot be served waits for the next try: twice as long
// each time.
const (
	resumeFirst = time.Second
	resumeMost  = time.Minute
)

// resume serves what the journal knows, and goes on trying with what cannot be
// served yet, for want of descriptors, say. stop ends that.
func (b *broker) resume(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	r := resuming{broker: b, told: map[string]string{}}
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
	told   map[string]string // by link: the error that has been logged
}

// again tries until everything is served.
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

// all tries each link that is not served, and reports whether none is left. One
// that cannot be served is logged: the others must not suffer from it.
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

// tell logs what is new.
func (r *resuming) tell(name string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != r.told[name] {
		r.broker.log.print("%s; it is tried again, once a minute at least", text)
	}
	r.told[name] = text
}

// resumeLink serves a link of the journal that is not served.
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
	if errors.Is(err, fs.ErrNotExist) { // it has been removed meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	return b.start(*e)
}
