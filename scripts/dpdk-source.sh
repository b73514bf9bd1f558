#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Print the folder with the driver headers of the installed DPDK. Debian's packages do not contain them, so they come
# from the source package of the same version. It is fetched once, into out/dpdk-source/VERSION; after that no network
# is needed.
#
# usage: scripts/dpdk-source.sh [--cached]
#   --cached  do not fetch: exit 1 if the headers are missing
#
# If no mirror has that source package, DRAY_DPDK_SOURCE names a folder with the sources of the same DPDK release
# (its stable updates, such as 24.11.1 to 24.11.9, keep these headers).
#
# Nothing under /etc/apt or /var/lib/apt is changed: the list of source packages is derived from the machine's own apt
# sources and read into a temporary state directory. Root is not needed.
set -euo pipefail

die() {
	echo "dpdk-source: error: $1" >&2
	echo "dpdk-source: fix: $2" >&2
	exit 1
}

# sources prints a deb-src line for each of this machine's sources that is Debian's own.
sources() {
	local options='' uri release component
	local keys=/usr/share/keyrings/debian-archive-keyring.gpg
	[ ! -e "$keys" ] || options="signed-by=$keys"
	# shellcheck disable=SC2016 # apt expands these
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' | sort -u |
		while read -r uri release component; do
			# The Release file of a snapshot is past its date.
			if [[ $uri == *snapshot.debian.org* ]]; then
				echo "deb-src [$options check-valid-until=no] $uri $release $component"
			else
				echo "deb-src [$options] $uri $release $component"
			fi
		done
}

# apt runs apt-get on the private list and state.
apt() {
	apt-get -q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=- \
		-o Dir::State="$work/state" -o Dir::State::status=/var/lib/dpkg/status -o Dir::Cache="$work/cache" \
		-o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 "$@" >"$work/log" 2>&1 </dev/null
}

# prepare makes a temporary folder on the same file system as the headers.
prepare() {
	mkdir -p out/dpdk-source
	# On the same file system, so that what is complete can be moved to its place.
	work=$(mktemp -d -p "$PWD/out/dpdk-source" .fetch-XXXXXX)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	mkdir "$work/headers"
}

# copy takes the headers from the user's folder.
copy() {
	local theirs ours=${version%%[~-]*}
	theirs=$(cat "$1/VERSION" 2>/dev/null) || die "DRAY_DPDK_SOURCE=$1 has no file VERSION" "unpack the sources of DPDK $ours there"
	[ "$(cut -d. -f1,2 <<<"$theirs")" = "$(cut -d. -f1,2 <<<"$ours")" ] ||
		die "DRAY_DPDK_SOURCE=$1 is DPDK $theirs, and $ours is installed" "unpack the sources of DPDK $ours there"
	prepare
	take "$1" || die "DRAY_DPDK_SOURCE=$1 has no ethdev_driver.h" "unpack the complete sources of DPDK $ours there"
}

# fetch takes the headers from the source package.
fetch() {
	prepare
	mkdir -p "$work"/{state/lists/partial,cache/archives/partial}
	sources >"$work/sources.list"
	[ -s "$work/sources.list" ] || die "apt has no Debian source on this machine" "apt-get update"
	if ! apt update || ! (cd "$work" && apt source --download-only "$package=$version"); then
		sed 's/^/  apt: /' "$work/log" | tail -n 20 >&2
		die "the source of $package $version could not be fetched" \
			"check the network; if the mirror has a newer version: apt-get update && apt-get install libdpdk-dev dpdk, then try again; or unpack the sources of DPDK ${version%%[~-]*} and set DRAY_DPDK_SOURCE to their folder"
	fi
	if ! (cd "$work" && dpkg-source --no-copy --extract ./*.dsc tree) >"$work/log" 2>&1; then
		sed 's/^/  dpkg-source: /' "$work/log" | tail -n 20 >&2
		die "the source of $package $version could not be unpacked" "install dpkg-dev: scripts/setup.sh run"
	fi
	take "$work/tree" || die "the source of $package $version has no ethdev_driver.h" "report this"
}

# take copies the headers out of a source tree.
take() {
	local tree=$1
	find "$tree"/lib/{eal,ethdev}/ "$tree"/drivers/bus/vdev/ \
		\( -name '*_driver.h' -o -name 'ethdev_*.h' \) -exec cp -t "$work/headers" {} +
	[ -e "$work/headers/ethdev_driver.h" ] || return 1
	mv -T "$work/headers" "$headers" 2>/dev/null || [ -e "$headers/ethdev_driver.h" ] # another run was first
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
cached=
case $# in
0) ;;
1) [ "$1" = --cached ] && cached=yes ;;
esac
if [ $# -gt 1 ] || { [ $# -eq 1 ] && [ -z "$cached" ]; }; then
	sed -n 's/^# \{0,1\}//; 7,8p' "${BASH_SOURCE[0]}" >&2
	exit 2
fi
# shellcheck disable=SC2016 # dpkg-query expands these
read -r package version state < <(dpkg-query -W -f '${source:Package} ${source:Version} ${db:Status-Status}\n' libdpdk-dev 2>/dev/null) || true
[ "${state:-}" = installed ] || die "Debian's package libdpdk-dev is not installed" "scripts/setup.sh run"
headers=$PWD/out/dpdk-source/$version
if [ ! -e "$headers/ethdev_driver.h" ]; then
	[ -z "$cached" ] || exit 1
	if [ -n "${DRAY_DPDK_SOURCE:-}" ]; then
		copy "$DRAY_DPDK_SOURCE"
	else
		fetch
	fi
fi
echo "$headers"
