# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Control groups of both versions: one group for each machine, in every hierarchy.

# hierarchies prints "type path" of each hierarchy.
hierarchies() {
	awk '($3 == "cgroup" || $3 == "cgroup2") && $2 ~ "^/sys/fs/cgroup" { print $3, $2 }' /proc/self/mounts | sort -u -k2,2
}

# cgroup_make makes the group PATH, and all above it.
cgroup_make() {
	local type at part parent
	while read -r type at; do
		for part in ${1//\// }; do
			parent=$at at=$at/$part
			[ "$type" = cgroup ] || enable_controllers "$parent"
			mkdir -p "$at"
			[ "$type" = cgroup2 ] || [ ! -e "$at/cpuset.cpus" ] || fill_cpuset "$parent" "$at"
		done
	done < <(hierarchies)
}

# fill_cpuset gives a new group of version 1 what its parent has: it starts without processors, and takes no process.
fill_cpuset() {
	local parent=$1 at=$2 file
	for file in cpuset.cpus cpuset.mems; do
		[ -n "$(<"$at/$file")" ] || cat "$parent/$file" >"$at/$file"
	done
}

# enable_controllers passes every controller of a group of version 2 on to its children, and notes each one that it
# enables in the root group, so that cgroup_restore can disable it again.
enable_controllers() {
	local at=$1 controller
	for controller in $(<"$at/cgroup.controllers"); do
		[[ " $(<"$at/cgroup.subtree_control") " != *" $controller "* ]] || continue
		echo "+$controller" 2>/dev/null >"$at/cgroup.subtree_control" || continue
		[ -e "$at/cgroup.type" ] || echo "$at $controller" >>"$state/controllers"
	done
}

cgroup_restore() {
	local at controller
	[ -e "$state/controllers" ] || return 0
	while read -r at controller; do
		echo "-$controller" 2>/dev/null >"$at/cgroup.subtree_control" || say "left: $controller in $at/cgroup.subtree_control"
	done <"$state/controllers"
}

# cgroup_enter moves this shell.
cgroup_enter() {
	local type at
	while read -r type at; do
		echo 0 >"$at/$1/cgroup.procs"
	done < <(hierarchies)
}

# cgroup_remove removes the group PATH and all below it, with every process that is left there.
cgroup_remove() {
	local type at attempt
	while read -r type at; do
		[ -d "$at/$1" ] || continue
		for attempt in {1..600}; do
			find "$at/$1" -depth -type d -exec rmdir {} + 2>/dev/null && break
			[ "$attempt" -lt 20 ] || kill_all "$at/$1"
			sleep 0.1
		done
		[ ! -d "$at/$1" ] || say "left: $at/$1"
	done < <(hierarchies)
}

# kill_all kills what is left in a group and below it.
kill_all() {
	local pid
	while read -r pid; do
		kill -KILL "$pid" 2>/dev/null || true
	done < <(find "$1" -name cgroup.procs -exec cat {} + 2>/dev/null)
}

# cgroup_usage prints "memory in MiB, processor seconds" of the group PATH.
cgroup_usage() {
	local memory=/sys/fs/cgroup/memory/$1/memory.usage_in_bytes nanoseconds=/sys/fs/cgroup/cpuacct/$1/cpuacct.usage
	if [ -e "$memory" ]; then
		echo "$(($(<"$memory") >> 20)) $(($(<"$nanoseconds") / 1000000000))"
	elif [ -e "/sys/fs/cgroup/$1/memory.current" ]; then
		echo "$(($(<"/sys/fs/cgroup/$1/memory.current") >> 20)) $(awk '$1 == "usage_usec" { print int($2 / 1e6) }' "/sys/fs/cgroup/$1/cpu.stat")"
	else
		echo '? ?'
	fi
}
