// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"time"
)

// Sleep waits for d; if ctx ends first, it returns ctx's error.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
