// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// TestNamesAreMissing only if the kernel does not know them.
func TestNamesAreMissing(t *testing.T) {
	for err, missing := range map[error]bool{unix.EOPNOTSUPP: true, unix.EMFILE: false, unix.ENOMEM: false, unix.EPERM: false} {
		if got := lacksNames(err); errors.Is(got, host.ErrUnsupported) != missing || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
}
