// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/test/testenv"
)

// unusualChain is a chain with a container and a process, native ports and interfaces:
//
//	a (mostly runc), reflects ── p0, shm ──  b (process)
//	                          ── p1, veth ──
const unusualChain = `
apiVersion: drayage/v1
kind: Chain
name: unusual
functions:
  - {name: a, runtime: %s, command: ["%s", sink, --port, "dray:p0", --reflect], ports: [{name: p0, face: native}, {name: p1}]}
  - {name: b, runtime: process, command: [sleep, "1000"], ports: [{name: p0, face: native}, {name: p1}]}
links:
  - {name: memory, ends: [a.p0, b.p0], transport: shm}
  - {name: kernel, ends: [a.p1, b.p1], transport: veth}
`

// pivot makes an overlay above this host's root the root, with all other file systems of
// the host as they are. What is written to it is in memory.
const pivot = `
mount -t tmpfs overlay /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/root
awk '{ at[$1] = $5; above[$1] = $2; if ($5 == "/") root = $1 } END { for (m in at) if (above[m] == root) print at[m] }' /proc/self/mountinfo |
	while read -r dir; do
		case $dir in / | /mnt | /mnt/*) ;; *) mount --rbind "$dir" "/mnt/root$dir" || : ;; esac # it can be another test's, and gone
	done
cd /mnt/root
pivot_root . mnt
cd /
umount -l /mnt
test "$(stat -f -c %T /)" = overlayfs`

// unusualHosts are hosts as others have them: commands that make one in a mount namespace,
// variables of the environment, and the runtime of function a. A host without any IPv6 has its kernel's parameter: that,
// and cgroup v2 alone, is in scripts/unit-guest.sh.
var unusualHosts = []struct{ name, prelude, env, runtime string }{
	{name: "overlay as root", prelude: pivot},
	{name: "read-only usr", prelude: `
mount --rbind /usr /usr
mount -o remount,bind,ro /usr
if touch /usr/new 2>/dev/null; then exit 1; fi`},
	{name: "noexec tmp", prelude: `
mount -t tmpfs programs /mnt
cp "$dray" /mnt/dray
dray=/mnt/dray
mount --rbind /tmp /tmp
mount -o remount,bind,noexec /tmp`},
	// It hides processes from the users of containers, but not from root.
	{name: "hidepid", prelude: `
mount -t proc -o hidepid=2 proc /proc
if setpriv --reuid=65534 --regid=65534 --clear-groups test -e /proc/1; then exit 1; fi`},
	// With a mount there, the kernel refuses a container in a user namespace its own /proc.
	{name: "no IPv6", prelude: "mount -t tmpfs none /proc/sys/net/ipv6", runtime: "process"},
	{name: "cgroup v2 only", prelude: `
mount -t cgroup2 cgroup2 /sys/fs/cgroup || exit 77
for controller in cpuset memory pids; do grep -qw "$controller" /sys/fs/cgroup/cgroup.controllers || exit 77; done`},
	{name: "umask 077", prelude: "umask 077"},
	{name: "German", env: "LC_ALL=de_DE.UTF-8"},
	{name: "C over German", env: "LANG=de_DE.UTF-8 LC_ALL=C"},
}

// TestUnusualHosts brings a chain up on each host, passes packets between its functions, and
// takes it down.
func TestUnusualHosts(t *testing.T) {
	t.Parallel()
	draygen := generator(t)
	for _, host := range unusualHosts {
		t.Run(host.name, func(t *testing.T) {
			b := newBench(t)
			b.env = append(b.env, strings.Fields(host.env)...)
			if host.env != "" {
				b.env = append(b.env, "LANGUAGE=de", "LOCPATH="+german(t))
			}
			file := b.file(fmt.Sprintf(unusualChain, or(host.runtime, "runc"), draygen))
			r := b.inOwn(longest, "--mount", host.prelude+`
trap '"$dray" down unusual >&2' EXIT
"$dray" up `+file+` >&2
"$dray" exec unusual b -- `+draygen+` ping --port dray:p0 --packets 100 --rate 1kpps --strict --timeout 20s --catch-up 60s --peer-timeout 60s >&2
"$dray" exec unusual a -- ip -o link show p1
"$dray" status unusual >&2
trap - EXIT
"$dray" down unusual >&2`)
			if r.Code == 77 {
				t.Skip("this host's cgroup v2 lacks controllers, which v1 holds: scripts/unit-guest.sh covers it")
			}
			if r.Code != 0 || !strings.Contains(r.Stdout, "p1") {
				t.Errorf("%s", r)
			}
		})
	}
}

// german is a directory with a German locale, for LOCPATH.
func german(t *testing.T) string {
	t.Helper()
	testenv.File(t, "/usr/share/i18n/locales/de_DE")
	dir := t.TempDir()
	if out, err := exec.Command("localedef", "-i", "de_DE", "-f", "UTF-8", filepath.Join(dir, "de_DE.UTF-8")).CombinedOutput(); err != nil {
		t.Fatalf("localedef: %v: %s", err, out)
	}
	testenv.Must(t, os.Chmod(dir, 0o755))
	return dir
}
