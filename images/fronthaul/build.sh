#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Build OCUDU's base station and its emulator of a radio unit for the image `fronthaul`. `dray image fronthaul` runs this
# script in a root file system that has the recipe's packages, as a user without privileges.
#
# usage: build.sh SOURCE OUT
#   SOURCE  OCUDU's sources, which are changed
#   OUT     an empty folder, for what goes to /usr/local in the image
set -eu
source=$1
out=$2

# The image also runs on other machines. Without AVX2 the signal processing is several times slower.
arch=
case $(uname -m) in
x86_64)
	arch=-DMARCH=x86-64-v2
	! /lib64/ld-linux-x86-64.so.2 --help | grep -q 'x86-64-v3 (supported' || arch=-DMARCH=x86-64-v3
	;;
esac

# OCUDU uses ccache if there is one.
export CCACHE_DIR="$PWD/cache" CCACHE_MAXSIZE=1G

# The generated ASN.1 code is three quarters of all code, and takes little of the run time: it is not optimised, to compile sooner.
for list in "$source/lib/asn1/CMakeLists.txt" "$source/lib/asn1/rrc_nr/CMakeLists.txt"; do
	sed -i 's/PRIVATE -Os/PRIVATE -O0/' "$list"
done
cmake -G Ninja -S "$source" -B build -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" -DCMAKE_SKIP_RPATH=ON \
	$arch -DDU_SPLIT_TYPE=SPLIT_7_2 -DENABLE_DPDK=ON -DENABLE_UHD=OFF -DENABLE_SIDEKIQ=OFF -DENABLE_ZEROMQ=OFF -DENABLE_MKL=OFF \
	-DENABLE_BACKWARD=OFF -DENABLE_PLUGINS=OFF -DENABLE_WERROR=OFF -DBUILD_TESTING=OFF
ninja -C build ru_emulator gnb

mkdir -p "$out/bin" "$out/share/ocudu"
for program in apps/gnb/gnb apps/examples/ofh/ru_emulator; do
	strip -o "$out/bin/$(basename "$program")" "build/$program"
done
cp -r "$source/LICENSE" "$source/LICENSES" "$source/COPYRIGHTS.txt" "$out/share/ocudu"
