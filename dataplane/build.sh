#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build targets of a project of this folder in out/PROJECT-KIND; without targets, everything that is configured. KIND is plain (as
# released), asan (AddressSanitizer and UBSan), tsan (ThreadSanitizer) or aarch64. Tests, benches and fuzzers are configured only
# with --tests, and stay so.
#
# usage: dataplane/build.sh [--tests] PROJECT KIND [TARGET...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
options=()
[ "${1:-}" != --tests ] || { options+=(-Dtests=true) && shift; }
project=${1:?port, gen, iq, pmd, vnf or sctp} kind=${2:?plain, asan, tsan or aarch64}
shift 2
readonly dir=out/$project-$kind
case $kind in
plain) options+=(-Dbuildtype=release) ;;
asan) options+=(-Dbuildtype=debugoptimized '-Db_sanitize=address,undefined') ;;
tsan) options+=(-Dbuildtype=debugoptimized -Db_sanitize=thread) ;;
aarch64) options+=(-Dbuildtype=release --cross-file dataplane/port/aarch64.ini) ;;
*)
	echo "build: error: '$kind' is none of plain, asan, tsan and aarch64" >&2
	exit 2
	;;
esac
mkdir -p out
# ccache, if it is installed, then also knows what a copy of this repository in another folder has compiled.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
# Each time: the lists of libdray's sources in other projects are made here.
[ ! -f "$dir/build.ninja" ] || options+=(--reconfigure)
scripts/step.sh "configure $dir" meson setup "$dir" "dataplane/$project" "${options[@]}"
scripts/step.sh "build $dir" ninja -C "$dir" "$@"
