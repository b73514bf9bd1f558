// SPDX-License-Identifier: Apache-2.0

package node

import "context"

// background is background work of this process. The zero value does nothing.
type background struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// begin starts the work, which ends soon after its context.
func (c *background) begin(work func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	c.cancel, c.done = cancel, done
	go func() {
		defer close(done)
		work(ctx)
	}()
}

// end ends the work, if any, and waits until it is over.
func (c *background) end() {
	if c.cancel != nil {
		c.cancel()
		<-c.done
		*c = background{}
	}
}
