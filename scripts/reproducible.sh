#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build the files that git knows in two folders, with different names, time zones and languages, and compare every byte of what
# make install installs. With quick, only the programs in Go, dray-limit and libdray.
#
# usage: scripts/reproducible.sh [quick]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

SOURCE_DATE_EPOCH=$(date --utc --date "$(scripts/build-date.sh)" +%s)
export SOURCE_DATE_EPOCH CCACHE_DISABLE=1 # a cache would compare a build with itself
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# build builds in a folder, and puts what is compared into its subfolder result.
build() {
	local folder=$1
	mkdir -p "$folder/result"
	git -c safe.directory='*' ls-files -z --cached | xargs -0 cp --parents --no-dereference -t "$folder"
	if [ -d out/dpdk-source ]; then
		mkdir -p "$folder/out"
		cp -r out/dpdk-source "$folder/out/"
	fi
	case $kind in
	quick)
		make -C "$folder" --no-print-directory programs port
		cp "$folder"/bin/* "$folder/out/port-plain/libdray.so.$(<VERSION)" "$folder/result/"
		;;
	full) make -C "$folder" --no-print-directory install DESTDIR="$folder/result" ;;
	esac >"$folder/log" 2>&1 || {
		tail -n 30 "$folder/log" >&2
		echo "reproducible: error: the build failed" >&2
		exit 1
	}
}

case ${1:-full} in
quick | full) readonly kind=${1:-full} ;;
*)
	echo "reproducible: error: '$1' is not quick" >&2
	exit 2
	;;
esac
TZ=Pacific/Kiritimati LC_ALL=C build "$work/a"
TZ=America/Los_Angeles LC_ALL=C.UTF-8 build "$work/another/longer-name"
diff -r "$work/a/result" "$work/another/longer-name/result" >&2 || {
	echo "reproducible: error: the two builds differ" >&2
	exit 1
}
echo "reproducible: $(find "$work/a/result" -type f | wc -l) files are the same from two folders"
