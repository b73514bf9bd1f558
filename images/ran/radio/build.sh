#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Build srsRAN 4G's radio "zmq" on Drayage ports: OUT/libsrsran_rf_zmq.so. srsRAN loads its radios by name, so one in a folder of
# LD_LIBRARY_PATH comes before its own. It finds libdray_iq.so in the folder above its own, or where the system looks.
#
# rf_zmq_imp.c of srsRAN (AGPL) is compiled as it is, between the files here (rf_dray.h says how): nothing of it is copied or changed.
# dray_iq.h is next to this script, or in the repository. libdray_iq.so is not needed to build.
#
# usage: build.sh SRSRAN_SOURCE SRSRAN_BUILD OUT
set -eu

fail() {
	echo "radio: error: $*" >&2
	exit 1
}

[ $# -eq 3 ] || {
	echo "usage: build.sh SRSRAN_SOURCE SRSRAN_BUILD OUT" >&2
	exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
rf=$1/lib/src/phy/rf build=$2 out=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What is replaced must be what it was when it was: the file that is compiled, and the declarations of the replaced files. Copyright years may change.
check() {
	[ -f "$rf/$1" ] || fail "$rf has no $1: name the source folder of srsRAN 4G"
	sum=$(sed 's/Copyright [0-9-]*//' "$rf/$1" | sha256sum)
	[ "${sum%% *}" = "$2" ] || fail "$rf/$1 is not that of srsRAN 4G at commit 1fab3df8, for which this radio is written: take that commit"
}
check rf_zmq_imp.c 9fc710dcf99f987f3cff67165777bb216aa5c56053c2f918cbf79ab322e3f3b7
check rf_zmq_imp_trx.h ee4d301cebc21ee51c33f47267f65c0434b7cbcf3f114cc8f16631a8d14feb2a
for library in rf/libsrsran_rf_utils.a libsrsran_phy.a; do
	[ -f "$build/lib/src/phy/$library" ] || fail "$build has no lib/src/phy/$library: build srsRAN there first (ninja srsenb srsue)"
done

header=
for folder in "$here" "$here/../../../dataplane/iq/include"; do
	[ ! -f "$folder/dray_iq.h" ] || header=${header:-$folder}
done
[ -n "$header" ] || fail "dray_iq.h is neither next to $0 nor in the repository: copy it from dataplane/iq/include"

# The linker needs the names of the library, and nothing else.
sed -n 's/^[a-z].*[ *]\(dray_iq_[a-z_]*\)(.*/void \1(void) {}/p' "$header/dray_iq.h" >"$work/names.c"
cc -shared -fPIC -Wl,-soname,libdray_iq.so -o "$work/libdray_iq.so" "$work/names.c"

mkdir -p "$out"
cc -shared -fPIC -std=gnu11 -O3 -DNDEBUG -Wall -D_GNU_SOURCE -DENABLE_RF_PLUGINS \
	-I"$here" -I"$header" -I"$rf" -I"$1/lib/include" -I"$build/lib/include" \
	-Wl,-soname,libsrsran_rf_zmq.so -Wl,--no-undefined -Wl,-rpath,"\$ORIGIN/.." -Wl,-z,relro -Wl,-z,now \
	-o "$out/libsrsran_rf_zmq.so" "$rf/rf_zmq_imp.c" "$here"/rf_dray.c "$here"/rf_dray_tx.c "$here"/rf_dray_rx.c \
	"$build/lib/src/phy/rf/libsrsran_rf_utils.a" "$build/lib/src/phy/libsrsran_phy.a" "$work/libdray_iq.so" -lfftw3f -lm -lpthread
