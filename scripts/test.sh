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

printf '\n== compiling the tests\n'
"$go" test -race -run '^$' -exec true "$@" >/dev/null

printf '\n== testing, with the race detector; kernel tests use namespaces of their own\n'
status=0
"$go" test -race -count=1 -p 1 -timeout 15m "$@" 2>&1 | grep -v --line-buffered -F '[no test files]' || status=$?
echo "tests took $((SECONDS - start)) s"
exit "$status"
