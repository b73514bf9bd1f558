#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build VPP 26.06 from its public sources and install it into a folder, for transports vpp and vpp-memif (as root, on
# Debian 12 or 13). It takes 20 to 25 minutes on two idle cores and 1.5 GB of disk below DIR.build, which may be removed
# afterwards. Debian packages that are missing are installed.
#
# usage: scripts/build-vpp.sh DIR
#   DIR  where VPP goes, for example /opt/vpp; then: export DRAY_VPP=/opt/vpp
#
# It may be run again after it was interrupted: what is built already stays.
set -euo pipefail

readonly repository=https://github.com/FDio/vpp
readonly tag=v26.06
readonly commit=c3200b88dc46bd380f00a49ca3392a102cc1980b
readonly packages=(
	clang-19 cmake git libelf-dev libiberty-dev libmnl-dev libnl-3-dev libnl-route-3-dev libssl-dev libunwind-dev lld-19
	llvm-19 nasm ninja-build python3-jsonschema python3-ply python3-yaml uuid-dev
)

# The options leave out what a switch between applications does not need.
# shellcheck disable=SC2054 # VPP separates by commas
readonly options=(
	-DCMAKE_C_COMPILER=clang-19 -DCMAKE_BUILD_TYPE=release -DVPP_USE_CCACHE=OFF
	-DVPP_PLUGINS=memif,vhost -DVPP_TOOLS=vppctl -DVPP_DRIVERS=none -DVPP_CRYPTO_ENGINES=native -DVPP_TESTS=none
)

die() {
	echo "build-vpp: error: $1" >&2
	echo "build-vpp: fix: $2" >&2
	exit 1
}

# fetch leaves the sources in the build folder, and checks that they are the release's.
fetch() {
	[ -d "$work/vpp/.git" ] || git clone --quiet --depth 1 --branch "$tag" "$repository" "$work/vpp"
	[[ $(git -C "$work/vpp" rev-parse HEAD) == "$commit" ]] ||
		die "$work/vpp is not commit $commit of $repository" "remove $work and try again; if that does not help, the tag $tag was moved"
}

if [ $# -ne 1 ] || [[ $1 != /* ]]; then
	sed -n 's/^# \{0,1\}//; 7,8p' "${BASH_SOURCE[0]}" >&2
	exit 2
fi
readonly work=$1.build
missing=()
for package in "${packages[@]}"; do
	[[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" ||
		die "apt cannot install ${missing[*]}" "apt-get update, then try again"
fi
mkdir -p "$work"
fetch
# Debian's python3 has the modules above; another one in the PATH may not.
PATH=/usr/bin:/bin:$PATH
cmake -G Ninja -S "$work/vpp/src" -B "$work/out" -DCMAKE_INSTALL_PREFIX="$1" "${options[@]}"
ninja -C "$work/out" install
env LD_LIBRARY_PATH="$(dirname "$(find "$1/lib" -name vpp_plugins)")" "$1/bin/vpp" --version
echo "build-vpp: done; export DRAY_VPP=$1, and see what dray doctor says"
