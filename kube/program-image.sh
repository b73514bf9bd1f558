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
# shellcheck source=kube/image-programs.sh
. ../image-programs.sh
export GOTOOLCHAIN=auto
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

mkdir -p "$root"/{bin,tmp,run}
install "$(type -P busybox)" "$root/bin/busybox"
for program in $("$root/bin/busybox" --list); do
	[ "$program" = busybox ] || ln -s busybox "$root/bin/$program"
done
add_programs "$root" "${programs[@]}"
"$(../../scripts/find-go.sh)" run ./mkimage "dray.local/$name:1" "$root" "$archive"
