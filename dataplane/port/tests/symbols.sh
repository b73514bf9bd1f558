#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The shared library exports what dray.map names, no more and no less, and needs libc alone.
set -euo pipefail
readonly library=$1 map=$2
exported=$(nm -D --defined-only "$library" | awk '$2 ~ /[TBDR]/ { sub(/@.*/, "", $3); print $3 }' | sort)
wanted=$(sed -n 's/^\t\t\(dray_[a-z_]*\);$/\1/p' "$map" | sort)
diff <(echo "$wanted") <(echo "$exported")
if nm -D "$library" | grep -E '__(asan|tsan|ubsan)' >/dev/null; then # -q would end nm by SIGPIPE
	exit 0 # a sanitizer needs libraries of its own
fi
needed=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v '^ld-linux' | sort | paste -sd' ')
[ "$needed" = libc.so.6 ] || { echo "needs $needed"; exit 1; }
