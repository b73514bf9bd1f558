#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measure every published experiment, or the named one, next to a Docker daemon of its own for the rows in Docker containers.
#
# usage: scripts/experiments.sh [EXPERIMENT] [option of dray bench...]      (as root, after make build)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# import gives the daemon an image of that recipe.
import() {
	archive=$(mktemp /var/tmp/dray-image-XXXXXX.tar)
	bin/dray image "$1" --tar "$archive"
	docker import "$archive" "dray-$1" >/dev/null
	rm -f "$archive"
}

# inside runs next to the daemon.
inside() {
	archive=
	trap 'rm -f "$archive"' EXIT
	import debian
	# The VNFs of experiments run in Docker containers only if the user asks for these.
	[[ " $* " != *" --containers"* ]] || import vnf
	case ${1-} in
	'' | -*) bin/dray bench --all "$@" ;;
	*) bin/dray bench "$@" ;;
	esac
}

if [ "${1-}" = --inside ]; then
	shift
	inside "$@"
else
	scripts/with-hugepages.sh 64 scripts/with-docker.sh "$PWD/scripts/experiments.sh" --inside "$@"
fi
