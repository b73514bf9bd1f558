#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run a command in a container of runc's: the host's files, of which the root's own mount is read-only but for DIR (other mounts below it stay as they are);
# namespaces of its own, no capability, no new privileges. Called in a mount and a PID namespace of its own, with which all of it goes.
#
# usage: container.sh DIR COMMAND [ARGUMENT ...]
set -euo pipefail
dir=$1
shift
bundle=$dir/bundle
mkdir -p "$bundle/rootfs"
mount --make-rprivate /
mount --rbind / "$bundle/rootfs"
words=$(printf '"%s",' "$@")
{
	printf '{"ociVersion":"1.0.2","root":{"path":"rootfs","readonly":true},"process":{"args":[%s],' "${words%,}"
	printf '"cwd":"/","env":["PATH=%s"],"noNewPrivileges":true,"user":{"uid":0,"gid":0},"capabilities":{}},' "$PATH"
	printf '"mounts":[{"destination":"/proc","type":"proc","source":"proc"},{"destination":"/dev","type":"tmpfs","source":"tmpfs"},'
	printf '{"destination":"%s","type":"bind","source":"%s","options":["bind","rw"]}],' "$dir" "$dir"
	printf '"linux":{"namespaces":[{"type":"mount"},{"type":"pid"},{"type":"network"},{"type":"ipc"},{"type":"uts"}]}}\n'
} >"$bundle/config.json"
exec runc --root "$dir/runc" run --bundle "$bundle" "dray-pmd-bench-$(basename "$(dirname "$dir")")-$(basename "$dir")"
