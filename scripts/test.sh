#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run the Go tests of the given packages with the race detector, one package
# after another: many of them measure this machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOTOOLCHAIN=local CGO_ENABLED=1
# A missing program fails a test here, where it would be skipped in plain go test.
export DRAY_TEST_STRICT=1
[ $# -gt 0 ] || set -- ./...
go=$(scripts/find-go.sh)
PATH="$(dirname "$go"):$PATH" # tools and tests call go by its name
start=$SECONDS
readonly log=out/test.txt
mkdir -p out
: >"$log"

printf '\n== compiling the tests\n'
"$go" test -race -run '^$' -exec true "$@" >/dev/null

packages=$("$go" list "$@")
status=0

# run prints what the go command prints, but for packages without tests.
run() {
	"$go" test -race -count=1 -p 1 -timeout 40m "$@" 2>&1 |
		grep -v --line-buffered -E '\[no test files\]|^=== (PAUSE|CONT|NAME)' | tee -a "$log" || status=$?
}

mapfile -t short < <(grep -vE '/test/(e2e|docs)$' <<<"$packages")
if [ ${#short[@]} -gt 0 ]; then
	printf '\n== testing each package, with the race detector; kernel tests use namespaces of their own\n'
	run "${short[@]}"
fi

mapfile -t long < <(grep -E '/test/(e2e|docs)$' <<<"$packages")
if [ ${#long[@]} -gt 0 ]; then
	printf '\n== testing the program as a user runs it; each test is named, for they take minutes\n'
	run -v "${long[@]}"
fi
# Once more, where whoever reads only the end of the output finds it.
[ "$status" -eq 0 ] || grep -E -B 15 -A 8 '^ *--- FAIL|^FAIL|^panic:' "$log" || true
echo "tests took $((SECONDS - start)) s"
exit "$status"
