#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Have dray-vnf-probe pass all frames through each function, eight times: none is dropped.
#
# usage: probe.sh DRAY-VNF-PROBE
set -euo pipefail
lines=$(for round in {1..8}; do printf "$round pass %d\n" {0..7}; done)
answers=$("$1" <<<"$lines")
[ "$(grep -c '"values": \[[0-9]' <<<"$answers")" -eq 64 ] || {
	echo "a line has no samples:"
	echo "$answers"
	exit 1
}
