#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Build srsRAN 4G and the radio of Drayage for the image `ran`. `dray image ran` runs this script in a root file system
# that has the recipe's packages, as a user without privileges.
#
# usage: build.sh SOURCE OUT
#   SOURCE  srsRAN's sources, which are changed
#   OUT     an empty folder, for what goes to /usr/local in the image
set -eu
here=$(dirname "$0")
source=$1
out=$2

# The image also runs on other machines. srsRAN needs x86-64-v2 at least.
arch=armv8-a
case $(uname -m) in
x86_64)
	arch=x86-64-v2
	/lib64/ld-linux-x86-64.so.2 --help | grep -q 'x86-64-v3 (supported' && arch=x86-64-v3
	;;
esac

# srsRAN uses ccache if there is one.
export CCACHE_DIR="$PWD/cache" CCACHE_MAXSIZE=500M

# The generated ASN.1 code is half of all code, and takes little of the run time: it is not optimised, to compile sooner.
sed -i 's/PRIVATE "-Os"/PRIVATE "-O0"/' "$source/lib/src/asn1/CMakeLists.txt"
cmake -G Ninja -S "$source" -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DCMAKE_SKIP_RPATH=ON \
	-DGCC_ARCH=$arch -DENABLE_AVX512=OFF -DENABLE_GUI=OFF -DENABLE_UHD=OFF -DENABLE_BLADERF=OFF -DENABLE_SOAPYSDR=OFF \
	-DENABLE_HARDSIM=OFF -DENABLE_WERROR=OFF -DENABLE_TIMEPROF=OFF -DBUILD_TESTING=OFF
ninja -C build srsepc srsenb srsue srsran_rf_zmq

mkdir -p "$out/bin" "$out/lib/dray" "$out/share/srsran"
for program in srsepc srsenb srsue; do
	strip -o "$out/bin/$program" "build/$program/src/$program"
done
cp --no-dereference build/lib/src/phy/rf/libsrsran_rf*.so* "$out/lib"
strip --strip-unneeded "$out"/lib/*.so.*.*
cp "$source/LICENSE" "$source/COPYRIGHT" "$out/share/srsran"
for file in sib rr rb; do
	cp "$source/srsenb/$file.conf.example" "$out/share/srsran/$file.conf"
done
if [ -e "$here/radio/build.sh" ]; then
	sh "$here/radio/build.sh" "$source" build "$out/lib/dray"
fi
