#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run a fuzzer of libdray for a while, as dataplane/common/fuzz.sh says. That of rings begins with a good packet of each kind
# (seeds.txt). The corpus is kept in out/port-fuzz.
#
# usage: dataplane/port/fuzz/run.sh handshake|ring [seconds]
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
readonly target=${1:?handshake or ring} seconds=${2:-10}
readonly out=$PWD/../../out/port-fuzz/$target
if [ "$target" = ring ]; then
	mkdir -p "$out/seeds"
	while read -r name bytes; do
		[ "$name" = "#" ] || printf '%b' "$bytes" >"$out/seeds/$name"
	done <fuzz/seeds.txt
fi
exec ../common/fuzz.sh "$out" "$seconds" 1024 -DDRAY_VERSION='"fuzz"' -Iinclude -Isrc -Itests \
	src/*.c src/*/*.c tests/{broker,memory,offered,test}.c "fuzz/$target.c" -pthread
