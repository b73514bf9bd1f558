#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run a command while this machine has at least so many free huge pages of 2 MiB. What is missing is taken from the kernel, which may not
# have as many, and given back however the command ends.
#
# usage: scripts/with-hugepages.sh PAGES COMMAND [argument ...]
set -uo pipefail
readonly dir=/sys/kernel/mm/hugepages/hugepages-2048kB
readonly pages=${1:?PAGES} command=("${@:2}")

taken=0
# Added to and subtracted from what there is, and counted, within the lock that the tests take too: others change the number meanwhile.
more() {
	local lock before ret=0
	exec {lock}<"$dir"
	flock "$lock"
	before=$(<"$dir/nr_hugepages")
	echo $((before + $1)) 2>/dev/null >"$dir/nr_hugepages" || ret=1
	taken=$((taken + $(<"$dir/nr_hugepages") - before))
	exec {lock}<&-
	return "$ret"
}

give_back() {
	[ "$taken" -le 0 ] || more "-$taken" || echo "with-hugepages: $taken huge pages could not be given back: lower $dir/nr_hugepages by that" >&2
}
trap give_back EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ -w "$dir/nr_hugepages" ]; then
	missing=$((pages - $(<"$dir/free_hugepages")))
	if [ "$missing" -gt 0 ]; then
		more "$missing"
		echo "took $taken of the $missing huge pages of 2 MiB that are missing while this runs; they are given back"
	fi
else
	echo "this machine gives no huge pages: what needs them is left out"
fi
"${command[@]}"
