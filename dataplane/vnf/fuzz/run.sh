#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build the fuzzer of the functions with clang, AddressSanitizer and UBSan, and run it for a while.
# Exits 77 with a reason where clang or its runtime is missing. It begins with a good packet of each kind (seeds.txt); the corpus is kept in out/vnf-fuzz.
#
# usage: dataplane/vnf/fuzz/run.sh [seconds]
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
readonly seconds=${1:-10} out=$PWD/../../out/vnf-fuzz
mkdir -p "$out/corpus" "$out/seeds"
type -P clang >/dev/null || { echo "clang is missing (Debian: clang)"; exit 77; }
echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n == 1; }' >"$out/probe.c"
clang -fsanitize=fuzzer,address,undefined "$out/probe.c" -o "$out/probe" 2>/dev/null ||
	{ echo "clang has no libFuzzer (Debian: libclang-rt-14-dev, or that of your clang)"; exit 77; }
clang -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Isrc \
	src/{arp,bng,checksum,function,gtpu,gtpu_header,ip4,l3fwd,lb,table}.c fuzz/handle.c -o "$out/fuzz" || exit 1
while read -r name bytes; do
	[ "$name" = "#" ] || printf '%b' "$bytes" >"$out/seeds/$name"
done <fuzz/seeds.txt
"$out/fuzz" -error_exitcode=1 -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 -artifact_prefix="$out/" -print_final_stats=1 "$out/corpus" "$out/seeds" 2>&1 |
	tail -n 12
exit "${PIPESTATUS[0]}"
