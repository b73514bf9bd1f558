#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build the fuzzer of draygen's receiver with clang, AddressSanitizer and UBSan, and run it for a while.
# Exits 77 with a reason where clang or its runtime is missing. The corpus is kept in out/gen-fuzz.
#
# usage: dataplane/gen/fuzz/run.sh [seconds]
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
readonly seconds=${1:-10} out=$PWD/../../out/gen-fuzz
mkdir -p "$out/corpus"
type -P clang >/dev/null || { echo "clang is missing (Debian: clang)"; exit 77; }
echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n == 1; }' >"$out/probe.c"
clang -fsanitize=fuzzer,address,undefined "$out/probe.c" -o "$out/probe" 2>/dev/null ||
	{ echo "clang has no libFuzzer (Debian: libclang-rt-14-dev, or that of your clang)"; exit 77; }
clang -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Isrc \
	src/{crc32c,encap,frame,histogram,packet,tracker,units}.c fuzz/receive.c -o "$out/fuzz" || exit 1
"$out/fuzz" -error_exitcode=1 -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 -artifact_prefix="$out/" -print_final_stats=1 "$out/corpus" 2>&1 |
	tail -n 12
exit "${PIPESTATUS[0]}"
