// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// share is the part of a resource of the host's root that one function can take, as
// a divisor. What a user namespace uses also counts against the user who made it.
const share = 16

// userLimits bound what a user namespace uses in all, by their name below
// /proc/sys/user (namespaces(7)). A container takes one namespace of each kind, and
// so does each program that `dray exec` starts; none needs more users or
// networks. Ordinary programs have one inotify instance and some hundred watches.
var userLimits = []struct {
	name string
	most int
}{
	{"max_inotify_instances", 16},
	{"max_inotify_watches", 4096},
	{"max_fanotify_groups", 16},
	{"max_fanotify_marks", 4096},
	{"max_mnt_namespaces", 64},
	{"max_pid_namespaces", 64},
	{"max_ipc_namespaces", 64},
	{"max_uts_namespaces", 64},
	{"max_cgroup_namespaces", 64},
	{"max_time_namespaces", 64},
	{"max_user_namespaces", 0},
	{"max_net_namespaces", 1}, // it has this one already
}

const userLimitsDir = "/proc/sys/user"

// usersShare are the limits as arguments of holderScript: at most the function's
// share of the host's, and only those that this kernel has.
func usersShare() ([]string, error) {
	var args []string
	for _, l := range userLimits {
		file := filepath.Join(userLimitsDir, l.name)
		content, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		args = append(args, file, strconv.FormatInt(min(int64(l.most), max(all/share, 1)), 10))
	}
	return args, nil
}

// UserRlimit is a hard limit of a function (setrlimit(2)).
type UserRlimit struct {
	Name string // as setrlimit names it, in lower case: "sigpending"
	Most uint64
}

// UserRlimits bound what the kernel counts in the same way but limits by process:
// queued signals, of which each timer holds one, and bytes of message queues. Each
// is at most half of this process's own. A queue takes 83,000 bytes by default.
func UserRlimits() ([]UserRlimit, error) {
	const rlimitMsgqueue, rlimitSigpending = 12, 11 // asm-generic/resource.h
	limits := []UserRlimit{{"sigpending", 4096}, {"msgqueue", 200000}}
	for i, resource := range []int{rlimitSigpending, rlimitMsgqueue} {
		var own unix.Rlimit
		if err := unix.Getrlimit(resource, &own); err != nil {
			return nil, fmt.Errorf("read the limit %s: %w", limits[i].Name, err)
		}
		limits[i].Most = min(limits[i].Most, max(own.Max/2, 1))
	}
	return limits, nil
}
