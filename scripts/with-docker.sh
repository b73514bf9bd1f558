#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run a command next to a Docker daemon of its own, which ends with it. The daemon has its own socket, data and
# namespaces, so one that the host runs is left alone.
#
# usage: scripts/with-docker.sh command [argument...]      (as root; the command finds the daemon by DOCKER_HOST)
set -euo pipefail

[ $# -gt 0 ] || { sed -n 's/^# \{0,1\}//; 6p' "${BASH_SOURCE[0]}" >&2; exit 2; }
# The daemon's folder stays locked while this script, the daemon or one of its containers runs.
# shellcheck source=scripts/own-folder.sh
source "$(dirname "${BASH_SOURCE[0]}")/own-folder.sh"
own_folder /run/dray-dockerd
readonly dir=$folder
export DOCKER_HOST=unix://$dir/docker.sock
daemon=

finish() {
	if [ -n "$daemon" ]; then
		kill -TERM "$daemon" 2>/dev/null || true
		wait "$daemon" 2>/dev/null || true
	fi
	# What the daemon started may still be writing as it ends.
	for _ in {1..100}; do
		rm -rf "$dir" 2>/dev/null && return
		sleep 0.1
	done
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Its mounts vanish with its mount namespace. In the host's network namespace "--bridge none" would delete
# docker0. If this script is killed, so is the daemon. Drayage counts memory in its own control groups; systemd's driver would leave them.
setpriv --pdeathsig TERM unshare --mount --net dockerd --host "$DOCKER_HOST" --data-root "$dir/data" --exec-root "$dir/exec" \
	--pidfile "$dir/pid" --exec-opt native.cgroupdriver=cgroupfs --bridge none --iptables=false --ip6tables=false >"$dir/log" 2>&1 </dev/null &
daemon=$!
for _ in {1..600}; do
	docker version >/dev/null 2>&1 && break
	kill -0 "$daemon" 2>/dev/null || { echo "with-docker: dockerd ended:" >&2; tail -n 20 "$dir/log" >&2; exit 1; }
	sleep 0.1
done
docker version >/dev/null || { tail -n 20 "$dir/log" >&2; exit 1; }
"$@"
