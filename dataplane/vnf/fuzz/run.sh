#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run the fuzzer of the functions for a while, as dataplane/common/fuzz.sh says. It begins with a good packet of each kind (seeds.txt);
# the corpus is kept in out/vnf-fuzz.
#
# usage: dataplane/vnf/fuzz/run.sh [seconds]
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
readonly out=$PWD/../../out/vnf-fuzz
mkdir -p "$out/seeds"
while read -r name bytes; do
	[ "$name" = "#" ] || printf '%b' "$bytes" >"$out/seeds/$name"
done <fuzz/seeds.txt
exec ../common/fuzz.sh "$out" "${1:-10}" 4096 -Isrc -I../common \
	src/{announce,arp,bng,checksum,flow,function,gtpu,gtpu_header,ip4,keep,l3fwd,lb,numbers,script,store,table,track}.c fuzz/handle.c
