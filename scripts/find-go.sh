#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Print the path of a Go toolchain that is new enough for go.mod, or fail.
set -euo pipefail

readonly wanted_minor=23 # go.mod: go 1.23.0

# minor_of prints 24 for a toolchain that calls itself go1.24.4.
minor_of() {
	local version
	# Outside the module, so that an old toolchain answers instead of reading go.mod.
	version=$(cd / && GOTOOLCHAIN=local GOFLAGS='' "$1" env GOVERSION 2>/dev/null) || return 1
	[[ $version =~ go1\.([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}

candidates() {
	type -P go || true
	echo /usr/local/go/bin/go
	printf '%s\n' /usr/lib/go-1.*/bin/go | sort --version-sort --reverse
}

while read -r go; do
	[ -x "$go" ] || continue
	if minor=$(minor_of "$go") && [ "$minor" -ge "$wanted_minor" ]; then
		echo "$go"
		exit 0
	fi
done < <(candidates)

echo "find-go: no Go toolchain 1.$wanted_minor or newer; as root, run: scripts/setup.sh run" >&2
exit 1
