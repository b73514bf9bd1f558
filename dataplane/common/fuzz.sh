#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build a libFuzzer target with clang, AddressSanitizer and UBSan, and run it for a while. OUT keeps the corpus, and its folder `seeds`,
# if there is one, has inputs to begin with. Exits 77 with a reason if clang or its runtime is missing.
#
# usage: fuzz.sh OUT SECONDS MAX-BYTES COMPILER-ARGUMENT...
set -uo pipefail
readonly out=$1 seconds=$2 max=$3 sanitizers=address,undefined
shift 3
mkdir -p "$out/corpus"
type -P clang >/dev/null || { echo "clang is missing (Debian: clang)"; exit 77; }
echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n == 1; }' >"$out/probe.c"
clang -fsanitize="fuzzer,$sanitizers" "$out/probe.c" -o "$out/probe" 2>/dev/null ||
	{ echo "libFuzzer is missing (Debian: libclang-rt-14-dev, or that of your clang)"; exit 77; }
mapfile -t flags < <("$(dirname "${BASH_SOURCE[0]}")/flags.sh" compile "$sanitizers" 1 "$(uname -m)")
clang -std=gnu11 "${flags[@]}" -g -O1 -fsanitize="fuzzer,$sanitizers" "$@" -o "$out/fuzz" || exit 1
inputs=("$out/corpus")
[ ! -d "$out/seeds" ] || inputs+=("$out/seeds")
"$out/fuzz" -error_exitcode=1 -max_total_time="$seconds" -max_len="$max" -timeout=10 -rss_limit_mb=1024 -artifact_prefix="$out/" \
	-print_final_stats=1 "${inputs[@]}" 2>&1 | tail -n 25
exit "${PIPESTATUS[0]}"
