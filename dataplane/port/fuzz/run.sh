#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build a libFuzzer target of libdray with clang, AddressSanitizer and UBSan, and run it for a while.
# Exits 77 with a reason where clang or its runtime is missing. The corpus is kept in out/port-fuzz.
#
# usage: dataplane/port/fuzz/run.sh handshake|ring [seconds]
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
readonly target=${1:?handshake or ring} seconds=${2:-10}
readonly out=$PWD/../../out/port-fuzz/$target
mkdir -p "$out/corpus"
type -P clang >/dev/null || { echo "clang is missing (Debian: clang)"; exit 77; }
echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n == 1; }' >"$out/probe.c"
clang -fsanitize=fuzzer,address,undefined "$out/probe.c" -o "$out/probe" 2>/dev/null ||
	{ echo "clang has no libFuzzer (Debian: libclang-rt-14-dev, or that of your clang)"; exit 77; }
clang -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
	-DDRAY_VERSION='"fuzz"' -Iinclude -Isrc -Itests src/*.c tests/{broker,memory,test}.c "fuzz/$target.c" \
	-pthread -o "$out/fuzz" || exit 1
"$out/fuzz" -error_exitcode=1 -max_total_time="$seconds" -max_len=1024 -timeout=10 -rss_limit_mb=1024 -artifact_prefix="$out/" -print_final_stats=1 "$out/corpus" 2>&1 |
	tail -n 25
exit "${PIPESTATUS[0]}"
