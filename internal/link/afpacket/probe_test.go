// SPDX-License-Identifier: Apache-2.0

package afpacket

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// TestSocketsAreMissing only if the kernel does not know them, or their options.
func TestSocketsAreMissing(t *testing.T) {
	for err, missing := range map[error]bool{unix.EAFNOSUPPORT: true, unix.ENOPROTOOPT: true, unix.EMFILE: false, unix.ENOMEM: false, unix.EPERM: false} {
		if got := lacksSockets(err); errors.Is(got, host.ErrUnsupported) != missing || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
}
