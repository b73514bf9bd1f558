// SPDX-License-Identifier: Apache-2.0

package node

import "context"

// care is work that goes on beside what this process does otherwise. The zero
// value is none.
type care struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// begin starts the work, which ends soon after its context.
func (c *care) begin(work func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	c.cancel, c.done = cancel, done
	go func() {
		defer close(done)
		work(ctx)
	}()
}

// end ends the work, if there is any, and waits for that.
func (c *care) end() {
	if c.cancel != nil {
		c.cancel()
		<-c.done
		*c = care{}
	}
}
