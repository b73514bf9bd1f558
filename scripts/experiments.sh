#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measure every published experiment, or the named one, next to a Docker daemon of its own for the rows in Docker containers.
#
# usage: scripts/experiments.sh [EXPERIMENT] [option of dray bench...]      (as root, after make build)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/own-folder.sh
source scripts/own-folder.sh
dray=bin/dray archive='' copy=''

# show_programs gives containers a copy of the programs if they do not see this clone: it is in one of the host's folders that
# runtime.Hidden names.
show_programs() {
	case $PWD/ in
	/home/* | /media/* | /mnt/* | /root/* | /run/* | /tmp/* | /var/tmp/*) ;;
	*) return 0 ;;
	esac
	own_folder /usr/local/lib/dray-programs
	copy=$folder
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
	[ "${1-}" != m15-fig1 ] || import ran
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
