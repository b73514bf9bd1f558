#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Make the Debian packages drayage, libdray0, libdray-dev and librte-net-dray for the Debian release of this machine, from
# the files that git knows, and have lintian check them. They are put into out/deb/RELEASE.
#
# usage: scripts/deb.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { echo "deb: $*"; }

# shellcheck source=/dev/null
release=$(. /etc/os-release && echo "${ID:-}${VERSION_ID:-}")
readonly release=${release#debian}
case $release in
12 | 13) ;;
*)
	echo "deb: error: packages are built on Debian 12 and 13, but this is $release" >&2
	exit 1
	;;
esac

scripts/setup.sh deb
scripts/dpdk-source.sh >/dev/null # it says what is missing, before the build takes minutes

upstream=$(<VERSION)
version=$upstream-1~deb${release}u1
go=$(scripts/find-go.sh)
# debhelper gives the build a home of its own, where no module is.
GOMODCACHE=$("$go" env GOMODCACHE) GOCACHE=$("$go" env GOCACHE) GOPROXY=$("$go" env GOPROXY) GOSUMDB=$("$go" env GOSUMDB)
SOURCE_DATE_EPOCH=$(date --utc --date "$(scripts/build-date.sh)" +%s)
export CCACHE_DIR=${CCACHE_DIR:-$HOME/.cache/ccache}
export GOMODCACHE GOCACHE GOPROXY GOSUMDB SOURCE_DATE_EPOCH

say "building $version"
readonly build=out/deb-build tree=out/deb-build/drayage-$upstream
rm -rf "$build"
mkdir -p "$tree"
git -c safe.directory='*' ls-files -z --cached --exclude-standard | xargs -0 cp --parents --no-dereference -t "$tree"
if [ -d out/dpdk-source ]; then
	mkdir -p "$tree/out"
	cp -r out/dpdk-source "$tree/out/"
fi
cat >"$tree/debian/changelog" <<END
drayage ($version) unstable; urgency=medium

  * Release $upstream. CHANGELOG.md has the changes.

 -- The Drayage maintainers <drayage@users.noreply.github.com>  $(LC_ALL=C date --utc --date "@$SOURCE_DATE_EPOCH" '+%a, %d %b %Y %T +0000')
END
# The Go of the release may come from elsewhere than a package: scripts/setup.sh has seen to it.
(cd "$tree" && dpkg-buildpackage --build=binary --no-sign --no-check-builddeps) >"$build/log" 2>&1 || {
	tail -n 40 "$build/log" >&2
	echo "deb: error: the build failed; its log: $build/log" >&2
	exit 1
}
rm -rf "out/deb/$release"
mkdir -p "out/deb/$release"
cp "$build"/*.deb "out/deb/$release/"
say "checking with lintian"
lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs --allow-root "out/deb/$release"/*.deb
(cd "out/deb/$release" && ls -s --block-size=K -- *.deb)
