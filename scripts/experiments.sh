#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measure every published experiment, or the named one, next to a Docker daemon of its own for the rows in Docker containers.
#
# usage: scripts/experiments.sh [EXPERIMENT] [option of dray bench...]      (as root, after make build)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dray=bin/dray archive='' copy=''

# Containers do not see the host's homes and temporary files: they get the programs of a clone there from a copy. It stays
# locked while it is used; one that a killed run has left is removed.
show_programs() {
	local left
	for left in /usr/local/lib/dray-programs-*/; do
		[ -d "$left" ] || continue
		exec {lock}<"$left"
		! flock --nonblock "$lock" || rm -rf "$left"
		exec {lock}<&-
	done
	case $PWD/ in
	/home/* | /media/* | /mnt/* | /root/* | /run/* | /tmp/* | /var/tmp/*) ;;
	*) return 0 ;;
	esac
	copy=$(mktemp -d /usr/local/lib/dray-programs-XXXXXX)
	exec {lock}<"$copy"
	flock "$lock"
	chmod 755 "$copy"
	cp -a bin/. "$copy"
	dray=$copy/dray
}

# import gives the daemon an image of that recipe.
import() {
	archive=$(mktemp /var/tmp/dray-image-XXXXXX.tar)
	"$dray" image "$1" --tar "$archive"
	docker import "$archive" "dray-$1" >/dev/null
	rm -f "$archive"
}

# inside runs next to the daemon.
inside() {
	trap 'rm -rf "$archive" "$copy"' EXIT
	show_programs
	import debian
	# The VNFs of experiments run in Docker containers only if the user asks for these.
	[[ " $* " != *" --containers"* ]] || import vnf
	case ${1-} in
	'' | -*) "$dray" bench --all "$@" ;;
	*) "$dray" bench "$@" ;;
	esac
}

if [ "${1-}" = --inside ]; then
	shift
	inside "$@"
else
	scripts/with-hugepages.sh 64 scripts/with-docker.sh "$PWD/scripts/experiments.sh" --inside "$@"
fi
