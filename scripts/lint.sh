#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Check the form of the whole repository. Every check runs, also after one failed. With sources, those of what make build made
# are left out, for a build that may be running.
#
# usage: scripts/lint.sh [sources]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly what=${1:-all}
case $what in
all | sources) ;;
*)
	echo "lint: error: '$what' is not sources" >&2
	exit 2
	;;
esac
# As make build compiles: nothing is compiled twice.
export GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=-trimpath
go=$(scripts/find-go.sh)
PATH="$(dirname "$go"):$PATH" # tools and tests call go by its name
readonly go
failed=()

# check runs one check, and prints what it says only if it fails.
check() {
	local name=$1 start=$SECONDS output
	shift
	if output=$("$@" 2>&1); then
		echo "ok    $name ($((SECONDS - start)) s)"
	else
		echo "FAIL  $name"
		printf '      %s\n' "${output//$'\n'/$'\n'      }"
		failed+=("$name")
	fi
}

tracked() {
	git -c safe.directory='*' ls-files "$@"
}

formatted() {
	local files unformatted
	mapfile -t files < <(tracked '*.go')
	unformatted=$("$(dirname "$go")/gofmt" -s -l "${files[@]}")
	[ -z "$unformatted" ] || {
		echo "not formatted; run gofmt -s -w on:"
		echo "$unformatted"
		return 1
	}
}

# staticcheck comes as a module, so that go.mod stays free of it. A release of
# it knows the Go versions of its time.
staticcheck() {
	local version module
	for module in "$@"; do
		version=v0.6.1
		[[ $(cd "$module" && "$go" env GOVERSION) =~ go1\.([0-9]+) ]]
		[ "${BASH_REMATCH[1]}" -lt 25 ] || version=v0.7.0
		(cd "$module" && GOFLAGS="$GOFLAGS -mod=mod" "$go" run "honnef.co/go/tools/cmd/staticcheck@$version" ./...) || return 1
	done
}

# bill_of_materials checks the module that writes it, and what it writes.
bill_of_materials() {
	cd scripts/sbom && "$go" mod tidy -diff && "$go" mod verify && "$go" vet ./... && "$go" test -count=1 ./...
}

# image_module checks the module that writes container images.
image_module() {
	cd kube/image && "$go" mod tidy -diff && "$go" vet ./... && "$go" test -count=1 ./...
}

# kube_module checks the module kube. It needs a newer Go than the rest, which Go fetches if it is not here.
kube_module() (
	export GOTOOLCHAIN=auto
	staticcheck kube && cd kube && "$go" mod tidy -diff && "$go" vet ./... && "$go" test -count=1 ./test/direction
)

scripts_are_clean() {
	local files
	mapfile -t files < <(git -c safe.directory='*' grep --name-only -E '^#!/bin/(ba)?sh' -- ':!*.go' ':!*.md')
	shellcheck --external-sources "${files[@]}"
}

# download fetches what the checks need, and tries again if the network fails. The checks themselves run once.
download() {
	local module attempt
	for module in . scripts/sbom kube/image kube; do
		for attempt in 1 2 3; do
			(cd "$module" && GOTOOLCHAIN=auto "$go" mod download) && break
			echo "downloading the modules of $module: attempt $attempt failed"
			[ "$attempt" -lt 3 ] && sleep 10
		done || return 1
	done
}

printf '\n== lint\n'
check 'download of modules' download
check 'gofmt' formatted
check 'clang-format' scripts/format-c.sh --check
check 'go vet' "$go" vet ./...
check 'staticcheck' staticcheck . scripts/sbom kube/image
check 'shellcheck' scripts_are_clean
check 'changelog entries' scripts/changelog.sh --check
check 'go.mod and go.sum are tidy' "$go" mod tidy -diff
check 'modules are as published' "$go" mod verify
check 'bill of materials' bill_of_materials
check 'images' image_module
check 'module kube' kube_module
[ "$what" = sources ] || check 'hardening of what make build made' "$go" test -count=1 ./test/hardening
check 'direction of dependencies' "$go" test -count=1 ./test/depcheck
check 'house rules: licence lines, lengths, words' "$go" test -count=1 ./test/style

[ ${#failed[@]} -eq 0 ] || {
	printf 'lint: failed: %s\n' "${failed[@]}" >&2
	exit 1
}
