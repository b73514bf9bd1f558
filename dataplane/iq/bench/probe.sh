#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Have dray-iq-probe carry a few subframes over each transport, paced and unpaced.
#
# usage: probe.sh DRAY-IQ-PROBE
set -euo pipefail
[ "$(id -u)" -eq 0 ] || {
	echo "skipped: network namespaces need root"
	exit 77
}
lines=$(for over in dray zmq-ipc zmq-tcp; do printf '1 %s 184320 0 50\n1 %s 15360 1000 50\n' $over $over; done)
answers=$("$1" <<<"$lines")
[ "$(grep -c '"values": \[[0-9]' <<<"$answers")" -eq 6 ] || {
	echo "a line has no samples:"
	echo "$answers"
	exit 1
}
