#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Write the image dray.local/testpmd:1: this machine's dpdk-testpmd, unmodified, the libraries and drivers that it
# needs, and busybox. Examples and tests use it.
#
# usage: kube/testpmd-image.sh ARCHIVE
set -euo pipefail
archive=$(realpath "${1:?ARCHIVE}")
cd "$(dirname "${BASH_SOURCE[0]}")/image"
export GOTOOLCHAIN=auto
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
readonly drivers='mempool_ring bus_vdev net_memif net_vhost net_virtio'

# add copies a file to where it is here, with the libraries that it is linked against. Several names of one library stay
# one file: it would be loaded twice otherwise.
add() {
	local file real
	for file in "$1" $(ldd "$1" | awk '$3 ~ /^\// { print $3 } $1 ~ /^\// { print $1 }'); do
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
add "$(type -P dpdk-testpmd)"
for driver in $drivers; do
	for file in /usr/lib/*/dpdk/pmds-*/librte_"$driver".so; do
		add "$file"
	done
done
"$(../../scripts/find-go.sh)" run ./mkimage dray.local/testpmd:1 "$root" "$archive"
