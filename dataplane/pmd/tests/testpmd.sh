#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two unmodified testpmd processes, without any capability, on the two ports of a link: frames pass; one of them is killed, the other sees the link go and
# come back, and goes on.
#
# usage: testpmd.sh DRIVER SERVE
set -uo pipefail
driver=$(realpath "$1") serve=$(realpath "$2")
type -P dpdk-testpmd >/dev/null || {
	echo "dpdk-testpmd is missing (Debian: dpdk-dev)"
	exit 77
}
cpus=$(awk '/^Cpus_allowed_list:/ { print $2 }' /proc/self/status)
work=$(mktemp -d "${TMPDIR:-/tmp}/dray-testpmd-XXXXXX")
chmod 755 "$work"
pids=() lib=
# Where another user may load it: neither below a closed folder nor below one that everybody may write to.
if [ "$(id -u)" -eq 0 ]; then
	lib=$(mktemp -d /var/cache/dray-testpmd-XXXXXX)
	chmod 755 "$lib"
	install -m 644 -t "$lib" "$driver"
	driver=$lib/$(basename "$driver")
fi

clean_up() {
	[ ${#pids[@]} -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null
	wait
	rm -rf "$work" ${lib:+"$lib"}
}
trap clean_up EXIT

fail() {
	echo "failed: $1"
	tail -n 40 "$work"/*.log
	exit 1
}

# until_says waits for a line that matches, in a log.
until_says() {
	for _ in {1..300}; do
		grep -aqE "$2" "$work/$1.log" && return
		sleep 0.1
	done
	fail "$1 never said: $2"
}

# testpmd starts one, as a user who may do nothing where this one may do all.
testpmd() {
	local name=$1 port=$2 mode=$3 as=()
	[ "$(id -u)" -ne 0 ] || as=(setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --no-new-privs)
	"${as[@]}" dpdk-testpmd --lcores "0@($cpus),1@($cpus)" --no-huge --no-shconf -m 128 --no-pci --no-telemetry -d "$driver" \
		--vdev "net_dray0,port=$port,dir=$work" -- --forward-mode="$mode" --stats-period=1 --total-num-mbufs=2048 --txpkts=200 \
		>"$work/$name.log" 2>&1 </dev/null &
	pids+=($!)
}

mkfifo "$work/hold"
"$serve" "$work" >"$work/serve.log" <"$work/hold" &
pids+=($!)
exec 3>"$work/hold"
until_says serve ready
[ "$(id -u)" -ne 0 ] || chown 65534 "$work/a" "$work/b"

testpmd sink b rxonly
until_says sink 'Port statistics'
testpmd first a txonly
until_says sink 'RX-packets: [1-9]'
until_says first 'TX-packets: [1-9]'
events() { grep -ac 'link state change event' "$work/sink.log"; }
seen=$(events)
kill -KILL "${pids[2]}"
for _ in {1..300}; do
	[ "$(events)" -gt "$seen" ] && break
	sleep 0.1
done
[ "$(events)" -gt "$seen" ] || fail "the sink did not see the link go"
sleep 1.5
before=$(grep -a 'RX-packets' "$work/sink.log" | tail -n 1 | awk '{ print $2 }')
testpmd second a txonly
until_says second 'TX-packets: [1-9]'
for _ in {1..300}; do
	after=$(grep -a 'RX-packets' "$work/sink.log" | tail -n 1 | awk '{ print $2 }')
	[ "$after" -gt "$before" ] && break
	sleep 0.1
done
[ "$after" -gt "$before" ] || fail "nothing came from the second sender"
kill -INT "${pids[1]}" "${pids[3]}"
until_says sink 'Bye'
until_says second 'Bye'
grep -aqE 'RX-errors: [1-9]|RX-nombuf: +[1-9]' "$work/sink.log" && fail "the sink counted errors"
echo "received $before frames, then $((after - before)) from the second sender"
