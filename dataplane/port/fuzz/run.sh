#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run a fuzzer of libdray for a while, as dataplane/common/fuzz.sh says. The corpus is kept in out/port-fuzz.
#
# usage: dataplane/port/fuzz/run.sh handshake|ring [seconds]
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
readonly target=${1:?handshake or ring} seconds=${2:-10}
exec ../common/fuzz.sh "$PWD/../../out/port-fuzz/$target" "$seconds" 1024 -DDRAY_VERSION='"fuzz"' -Iinclude -Isrc -Itests \
	src/*.c tests/{broker,memory,test}.c "fuzz/$target.c" -pthread
