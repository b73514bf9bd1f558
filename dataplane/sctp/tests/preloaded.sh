#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run a program with libraries preloaded: only that one, for meson and this shell are not meant.
#
# usage: preloaded.sh 'LIBRARY...' PROGRAM [argument ...]
set -eu
libraries=$1
shift
tests=$(dirname "$0")
export TSAN_OPTIONS="${TSAN_OPTIONS-} suppressions=$tests/tsan.supp"
LD_PRELOAD=$libraries exec "$@"
