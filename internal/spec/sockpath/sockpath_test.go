// SPDX-License-Identifier: Apache-2.0

package sockpath

import (
	"strings"
	"testing"
)

// TestDir: a directory has its own path as long as its longest socket fits there, and
// otherwise a short one that no other directory has.
func TestDir(t *testing.T) {
	fits := "/" + strings.Repeat("d", maxPath-len("/")-len("/vhost.sock"))
	if got := Dir(fits, "a", "vhost.sock"); got != fits {
		t.Errorf("a directory whose sockets fit is reached at %s", got)
	}
	long := fits + "d"
	short := Dir(long, "a", "vhost.sock")
	if short != Link(long) || len(short) > 40 {
		t.Errorf("the short path is %q, of %d bytes", short, len(short))
	}
	if other := Dir(long+"d", "vhost.sock"); other == short {
		t.Error("two directories have one path")
	}
	if got := Dir(long, "a"); got != long {
		t.Errorf("a shorter socket is reached at %s", got)
	}
	if got := Dir(strings.Repeat("/d", 1000)); strings.HasPrefix(got, Links) {
		t.Errorf("without sockets: %s", got)
	}
}
