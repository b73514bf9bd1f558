#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Attack running chains from inside their functions, for a time over all classes, or
# over those named. The victims with sanitizers are built first. Prints a table, and
# writes out/hostile.json.
#
# usage: scripts/hostile.sh TIME [class...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOTOOLCHAIN=local
time=${1:?usage: scripts/hostile.sh TIME [class...]}
shift

dataplane/build.sh --tests port asan attackers
dataplane/build.sh pmd asan librte_net_dray.so
dataplane/build.sh vnf asan dray-vnf
export DRAY_TEST_HOSTILE=$time DRAY_TEST_HOSTILE_CLASSES="$*" DRAY_TEST_HOSTILE_JSON=$PWD/out/hostile.json DRAY_TEST_STRICT=1
"$(scripts/find-go.sh)" test -vet=off -count=1 -v -timeout 0 ./test/hostile
