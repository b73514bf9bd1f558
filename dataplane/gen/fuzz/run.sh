#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run the fuzzer of draygen's receiver for a while, as dataplane/common/fuzz.sh says. The corpus is kept in out/gen-fuzz.
#
# usage: dataplane/gen/fuzz/run.sh [seconds]
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
exec ../common/fuzz.sh "$PWD/../../out/gen-fuzz" "${1:-10}" 4096 -Isrc -I../common \
	src/{crc32c,encap,fapi,fields,frame,fronthaul,fronthaul_frame,histogram,json,packet,slots,tracker,units,windows}.c fuzz/receive.c
