// SPDX-License-Identifier: Apache-2.0

package runc_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/runc"
	"github.com/drayage/dray/internal/function/runtimetest"
	"github.com/drayage/dray/internal/spec/chain"
)

// exhaust takes as much as it can of what the kernel counts by user, says how much
// that was, and keeps it.
var exhaust = fmt.Sprintf(`$| = 1; my ($i, $w, $t) = (0, 0, 0); my $fd = -1;
	while ($i < 1000) { my $new = syscall(%d, 0); last if $new < 0; $fd = $new; $i++ }
	open my $f, "-|", "find /usr -xdev -type f"; while ($w < 10000 && defined(my $p = <$f>)) { chomp $p; last if syscall(%d, $fd, $p, 2) < 0; $w++ }
	my $id = "\0" x 8; while ($t < 10000) { last if syscall(%d, 1, 0, $id) < 0; $t++ }
	for my $limit (glob "/proc/sys/user/max_*") { open my $l, "+<", $limit and syswrite($l, "100000\n") and print "raised $limit\n" }
	print "$i $w $t done\n"; sleep 1000`, unix.SYS_INOTIFY_INIT1, unix.SYS_INOTIFY_ADD_WATCH, unix.SYS_TIMER_CREATE)

// TestAFunctionLeavesRootItsShare: what a user namespace uses also counts against
// the host's root, who made it.
func TestAFunctionLeavesRootItsShare(t *testing.T) {
	needRunc(t)
	f := runtimetest.Up(t, runc.New(), chain.Function{})
	r := f.Start("perl", "-e", exhaust)
	r.Await("done\n")
	out := r.Out.String()
	if strings.Contains(out, "raised") {
		t.Errorf("the function raised its own limits: %s", out)
	}
	fields := strings.Fields(out)
	t.Logf("measured: the function has %s inotify instances, %s watches and %s timers", fields[len(fields)-4], fields[len(fields)-3], fields[len(fields)-2])
	for i, most := range []int{16, 4096, 4096} {
		what := []string{"inotify instances", "inotify watches", "timers"}[i]
		n, err := strconv.Atoi(fields[len(fields)-4+i])
		if err != nil || n < 1 || n > most {
			t.Errorf("the function has %d %s, want 1 to %d (%v)", n, what, most, err)
		}
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatalf("the host's root has no inotify instance left: %v", err)
	}
	unix.Close(fd)
}
