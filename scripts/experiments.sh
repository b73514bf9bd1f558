#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measure every published experiment, in containers of a Docker daemon of its own too.
#
# usage: scripts/experiments.sh [argument of dray bench...]      (as root, after make build)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# inside runs next to the daemon.
inside() {
	local archive status=0
	archive=$(mktemp /var/tmp/dray-debian-XXXXXX.tar)
	trap 'rm -f "$archive"' EXIT
	bin/dray image debian --tar "$archive"
	docker import "$archive" dray-debian >/dev/null
	rm -f "$archive"
	bin/dray bench --all "$@" || status=$?
	return "$status"
}

if [ "${1-}" = --inside ]; then
	shift
	inside "$@"
else
	scripts/with-hugepages.sh 64 scripts/with-docker.sh "$PWD/scripts/experiments.sh" --inside "$@"
fi
