#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Write the image dray.local/NAME:1: programs of this machine, unmodified, the libraries that they need, busybox, and for
# DPDK applications drivers. Examples and tests use it.
#
# usage: kube/program-image.sh NAME ARCHIVE PROGRAM...      PROGRAM: a path, or a name in the PATH
set -euo pipefail
name=${1:?NAME}
archive=$(realpath "${2:?ARCHIVE}")
programs=()
for program in "${@:3}"; do
	programs+=("$(realpath -s "$(type -P "$program")")")
done
[ ${#programs[@]} -gt 0 ] || {
	echo "$0: name a program" >&2
	exit 2
}
cd "$(dirname "${BASH_SOURCE[0]}")/image"
export GOTOOLCHAIN=auto
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
readonly drivers='mempool_ring bus_vdev net_memif net_vhost net_virtio'

# libraries prints the files that a file is linked against: none if it is static.
libraries() {
	ldd "$1" 2>/dev/null | awk '$3 ~ /^\// { print $3 } $1 ~ /^\// { print $1 }'
}

# add copies files to where they are here. Several names of one library stay one file: it would be loaded twice otherwise.
add() {
	local file real
	for file in "$@"; do
		real=$(realpath "$file")
		install -D "$real" "$root$real"
		[ "$file" = "$real" ] || { mkdir -p "$root${file%/*}" && ln -sfn "$real" "$root$file"; }
	done
}

mkdir -p "$root"/{bin,tmp,run}
install "$(type -P busybox)" "$root/bin/busybox"
for program in $("$root/bin/busybox" --list); do
	[ "$program" = busybox ] || ln -s busybox "$root/bin/$program"
done
for program in "${programs[@]}"; do
	install -D "$program" "$root/usr/bin/$(basename "$program")"
	mapfile -t needed < <(libraries "$program")
	add "${needed[@]}"
	[[ ${needed[*]} == *librte_ethdev* ]] || continue
	for driver in $drivers; do
		for file in /usr/lib/*/dpdk/pmds-*/librte_"$driver".so; do
			mapfile -t needed < <(libraries "$file")
			add "$file" "${needed[@]}"
		done
	done
done
"$(../../scripts/find-go.sh)" run ./mkimage "dray.local/$name:1" "$root" "$archive"
