#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Look for known vulnerabilities in the modules and the standard library that the programs in Go call. The database is that of the
# Go project, from the network; DB=URL names another, file:///DIR too. It is not part of make test, which must not depend on what
# was published today.
#
# exit: 0 none known, 1 not checked (the reason is printed), 3 some found
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go=$(scripts/find-go.sh)
PATH="$(dirname "$go"):$PATH" # govulncheck calls go by its name
export GOTOOLCHAIN=local GOFLAGS=-mod=mod
# A release of govulncheck knows the Go versions of its time.
version=v1.1.4
[[ $("$go" env GOVERSION) =~ go1\.([0-9]+) ]]
[ "${BASH_REMATCH[1]}" -lt 25 ] || version=v1.3.0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
GOBIN="$work" "$go" install "golang.org/x/vuln/cmd/govulncheck@$version"
status=0
"$work/govulncheck" -db "${DB:-https://vuln.go.dev}" ./cmd/... || status=$?
case $status in
0 | 3) exit "$status" ;;
*)
	echo "vulncheck: error: nothing was checked, for the reason above. The database must be reachable, or DB=URL name a copy of it" >&2
	exit 1
	;;
esac
