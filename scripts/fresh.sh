#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Repeat `make demo` and `make test` in a new Debian root file system, so that
# a missing installation step shows.
#
# usage: scripts/fresh.sh [12|13] [make target...]      (default: 12 demo test)
#
# The new system gets from this host: the committed HEAD of this repository, CA
# certificates, apt's mirror and proxy, the Go proxy settings, name servers, the sources
# in DRAY_DPDK_SOURCE, and the packages in out/deb; those that are made there come back. scripts/needs.sh also has it begin with what
# an earlier one downloaded and built (DRAY_FRESH_SEED), and without a Debian package (DRAY_FRESH_WITHOUT).
# It runs in mount, PID, IPC, UTS and cgroup namespaces of its own and shares
# the host's network. Nothing stays: it is removed at the end, on Ctrl-C, and
# after a SIGKILL by the next call.
set -euo pipefail

readonly cgroup=dray-fresh
readonly lock=/run/lock/dray-fresh.lock
readonly base=${DRAY_FRESH_DIR:-/var/tmp}
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
self=$repo/scripts/fresh.sh
readonly repo self
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

say() { echo "fresh: $*"; }
die() {
	echo "fresh: error: $*" >&2
	exit 1
}

# cgroup_mounts prints "type mountpoint options" of each cgroup hierarchy.
cgroup_mounts() {
	awk '$3 == "cgroup" || $3 == "cgroup2" { print $3, $2, $4 }' /proc/self/mounts | sort -u -k2,2
}

make_cgroups() {
	local type at options controller file
	while read -r type at options; do
		mkdir -p "$at/$cgroup"
		if [ "$type" = cgroup2 ]; then
			mkdir -p "$at/$cgroup/init"
			for controller in $(<"$at/cgroup.controllers"); do
				# One that is in use by a v1 hierarchy cannot be enabled here.
				echo "+$controller" >"$at/cgroup.subtree_control" 2>/dev/null || true
			done
		elif [[ ,$options, == *,cpuset,* ]]; then
			for file in cpuset.cpus cpuset.mems; do
				cat "$at/$file" >"$at/$cgroup/$file"
			done
		elif [ -e "$at/cpu.rt_runtime_us" ]; then
			# A new group has no real-time runtime, and it is shared out, not inherited.
			cat "$at/cpu.rt_runtime_us" >"$at/$cgroup/cpu.rt_runtime_us" 2>/dev/null || true
		fi
	done < <(cgroup_mounts)
}

join_cgroups() {
	local type at options
	while read -r type at options; do
		echo "$BASHPID" >"$at/$cgroup/cgroup.procs"
	done < <(cgroup_mounts)
}

remove_cgroups() {
	local type at options
	for _ in {1..50}; do
		while read -r type at options; do
			[ ! -d "$at/$cgroup" ] || find "$at/$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || true
		done < <(cgroup_mounts)
		compgen -G "/sys/fs/cgroup/*/$cgroup" >/dev/null || [ -d "/sys/fs/cgroup/$cgroup" ] || return 0
		sleep 0.1
	done
	say "warning: cgroups named $cgroup could not be removed"
}

cleanup() {
	local status=$?
	trap - EXIT INT TERM HUP
	if [ -n "${child:-}" ]; then
		kill -KILL "$child" 2>/dev/null || true # its namespaces die with it
		wait "$child" 2>/dev/null || true
	fi
	remove_cgroups
	rm -rf --one-file-system "$base"/dray-fresh.*
	exit "$status"
}

# mirror prints the address that this host gets the given suite from.
mirror() {
	local suite=$1 default=$2 found=''
	if type -P apt-get >/dev/null; then
		# shellcheck disable=SC2016 # apt expands these
		found=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
			awk -v c="$suite" '$1 == c && $2 == "main" { print $3; exit }')
	fi
	echo "${found:-$default}"
}

bootstrap() {
	local suite=$1 root=$2 host options=() archive security line
	# shellcheck source=/dev/null
	host=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	archive=$(mirror "$host" http://deb.debian.org/debian)
	security=$(mirror "$host-security" http://deb.debian.org/debian-security)
	while read -r line; do
		options+=(--aptopt="$line")
	done < <(apt-config dump --format '%F "%v"%n' Acquire::http::Proxy Acquire::https::Proxy | grep -v '""$')
	say "making Debian $suite from $archive"
	mmdebstrap --mode=root --variant=minbase --include=ca-certificates,make --quiet "${options[@]}" "$suite" "$root" \
		"deb $archive $suite main" "deb $archive $suite-updates main" "deb $security $suite-security main"
	cp -L /etc/resolv.conf "$root/etc/resolv.conf"
	printf '127.0.0.1 localhost %s\n::1 localhost\n' "$cgroup" >"$root/etc/hosts"
	copy_certificates "$root"
}

copy_certificates() {
	local root=$1 bundle=/etc/ssl/certs/ca-certificates.crt
	if [ -d /usr/local/share/ca-certificates ]; then
		cp -rL /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
		chroot "$root" update-ca-certificates >/dev/null 2>&1
	fi
	[ ! -s "$bundle" ] || cp -L "$bundle" "$root$bundle"
}

clone() {
	local root=$1 git=(git -c 'safe.directory=*') head
	head=$("${git[@]}" -C "$repo" rev-parse HEAD)
	if [ -n "$("${git[@]}" -C "$repo" status --porcelain)" ]; then
		say "note: uncommitted changes are left out"
	fi
	"${git[@]}" clone --quiet --no-hardlinks --no-checkout "$repo" "$root/root/dray"
	"${git[@]}" -C "$root/root/dray" -c advice.detachedHead=false checkout --quiet "$head"
	# Packages that were made earlier, for the target that tests them.
	if [ -d "$repo/out/deb" ]; then
		mkdir -p "$root/root/dray/out"
		cp -r "$repo/out/deb" "$root/root/dray/out/"
	fi
	[ -z "${DRAY_DPDK_SOURCE:-}" ] || cp -r "$DRAY_DPDK_SOURCE" "$root/usr/src/dpdk"
	say "cloned $("${git[@]}" -C "$repo" describe --always --tags "$head")"
}

# seed puts downloaded packages and builds of an earlier new system there, and leaves a package out of its lists (scripts/needs.sh).
seed() {
	local root=$1
	if [ -d "${DRAY_FRESH_SEED:-}" ]; then
		cp -a "$DRAY_FRESH_SEED/." "$root/"
	fi
	[ -z "${DRAY_FRESH_WITHOUT:-}" ] || sed -i -E "/ $DRAY_FRESH_WITHOUT\"?\$/d" "$root/root/dray/scripts/setup.sh"
}

# harvest keeps what this system downloaded and built, for seed.
harvest() {
	local root=$1 part
	for part in var/cache/apt/archives root/.cache root/go; do
		[ -d "$root/$part" ] || continue
		mkdir -p "$DRAY_FRESH_SEED/$part"
		cp -a --update "$root/$part/." "$DRAY_FRESH_SEED/$part/"
	done
}

# environment prints what the new system may know of this host's environment.
environment() {
	local name go value
	go=$("$repo/scripts/find-go.sh" 2>/dev/null) || go=''
	for name in GOPROXY GOSUMDB GONOSUMDB GONOPROXY GOPRIVATE GOFLAGS; do
		value=${!name:-}
		[ -n "$value" ] || [ -z "$go" ] || value=$("$go" env "$name")
		[ -z "$value" ] || echo "$name=$value"
	done
	[ -z "${DRAY_DPDK_SOURCE:-}" ] || echo DRAY_DPDK_SOURCE=/usr/src/dpdk
	for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY CI; do
		[ -z "${!name:-}" ] || echo "$name=${!name}"
	done
}

# enter is the first process in the new cgroup namespace. The namespace's root
# must hold no process, or version 2 would let nobody make groups with limits.
enter() {
	local type at options
	while read -r type at options; do
		[ "$type" != cgroup2 ] || echo $$ >"$at/$cgroup/init/cgroup.procs"
	done < <(cgroup_mounts)
	exec unshare --mount --pid --ipc --uts --fork --kill-child=KILL "$self" --inside "$@"
}

mount_cgroups() {
	local root=$1 type at options name
	if [[ $'\n'$(cgroup_mounts) != *$'\n''cgroup '* ]]; then
		mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
		return
	fi
	mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
	while read -r type at options; do
		name=${at##*/}
		mkdir "$root/sys/fs/cgroup/$name"
		if [ "$type" = cgroup2 ]; then
			mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup/$name"
			continue
		fi
		# What is left of the options are the controllers, or the name.
		options=$(tr , '\n' <<<"$options" | grep -vE '^(rw|ro|relatime|noatime|nosuid|nodev|noexec|xattr|clone_children|release_agent=.*)$' | paste -sd,)
		mount -t cgroup -o "$options" cgroup "$root/sys/fs/cgroup/$name"
	done < <(cgroup_mounts)
	for at in /sys/fs/cgroup/*; do
		[ ! -L "$at" ] || ln -s "$(readlink "$at")" "$root/sys/fs/cgroup/${at##*/}"
	done
}

mount_devices() {
	local root=$1 device
	mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
	mkdir "$root/dev/net" "$root/dev/pts" "$root/dev/shm" "$root/dev/mqueue" "$root/dev/hugepages"
	for device in null zero full random urandom tty kvm net/tun; do
		[ -e "/dev/$device" ] || continue
		: >"$root/dev/$device"
		mount --bind "/dev/$device" "$root/dev/$device"
	done
	mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
	ln -s fd/0 "$root/dev/stdin"
	ln -s fd/1 "$root/dev/stdout"
	ln -s fd/2 "$root/dev/stderr"
	mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
	mount -t mqueue mqueue "$root/dev/mqueue"
	if grep -qw hugetlbfs /proc/filesystems; then
		mount -t hugetlbfs hugetlbfs "$root/dev/hugepages"
	fi
}

# inside is PID 1 of the new system: it mounts what a booted machine has,
# leaves the host's file system behind, and runs the commands.
inside() {
	local root=$1
	shift
	hostname "$cgroup"
	mount --make-rprivate /
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc"
	mount -t sysfs sysfs "$root/sys"
	mount -t tmpfs -o mode=755,nosuid,nodev tmpfs "$root/run"
	mkdir -m 1777 "$root/run/lock"
	mount_devices "$root"
	mount_cgroups "$root"
	# A pivoted root, because a chroot may not make user namespaces.
	cd "$root"
	pivot_root . .
	umount --lazy .
	cd /root/dray
	commands "$@"
}

commands() {
	local target start status failed=0 summary=()
	for target in "$@"; do
		say "=== make $target"
		start=$SECONDS
		status=0
		make "$target" </dev/null || status=$?
		summary+=("make $target: exit status $status after $((SECONDS - start)) s")
		[ "$status" -eq 0 ] || failed=1
	done
	printf 'fresh: %s\n' "${summary[@]}"
	exit "$failed"
}

# start_in makes targets in a root file system, in a job of its own, so that Ctrl-C reaches this script at once.
start_in() {
	local environment
	make_cgroups
	mapfile -t environment < <(environment)
	set -m
	(
		join_cgroups
		exec env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			"${environment[@]}" setpriv --pdeathsig KILL unshare --cgroup "$self" --enter "$@"
	) </dev/null &
	child=$!
	set +m
}

main() {
	local suite root
	case ${1:-12} in
	12) suite=bookworm ;;
	13) suite=trixie ;;
	*) die "unknown Debian release '$1': 12 or 13" ;;
	esac
	shift || true
	[ $# -gt 0 ] || set -- demo test
	[ "$(id -u)" -eq 0 ] || die "needs root: it makes a root file system and mounts"
	if ! type -P mmdebstrap git >/dev/null; then
		say "installing mmdebstrap and git"
		DEBIAN_FRONTEND=noninteractive apt-get -y -q install --no-install-recommends mmdebstrap git </dev/null
	fi
	mkdir -p "${lock%/*}"
	exec 9>"$lock"
	flock --nonblock 9 || die "another one is running; it holds $lock"

	trap cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	remove_cgroups # of a call that was killed, as is the next
	rm -rf --one-file-system "$base"/dray-fresh.*
	root=$(mktemp -d "$base/dray-fresh.XXXXXX")
	chmod 755 "$root"
	bootstrap "$suite" "$root"
	clone "$root"
	seed "$root"
	start_in "$root" "$@"
	local status=0
	wait "$child" || status=$?
	[ -d "${DRAY_FRESH_SEED:-$root}" ] || harvest "$root"
	if [ -d "$root/root/dray/out/deb" ]; then
		mkdir -p "$repo/out/deb"
		cp -r --update "$root/root/dray/out/deb/." "$repo/out/deb/"
	fi
	return "$status"
}

case ${1:-} in
--enter) shift && enter "$@" ;;
--inside) shift && inside "$@" ;;
*) main "$@" ;;
esac
