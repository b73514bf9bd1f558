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
# Added to and subtracted from what there is: others may have changed it meanwhile. The tests take the same lock.
more() {
	local lock ret=0
	exec {lock}<"$dir"
	flock "$lock"
	echo $(($(<"$dir/nr_hugepages") + $1)) 2>/dev/null >"$dir/nr_hugepages" || ret=1
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
	before=$(<"$dir/nr_hugepages")
	missing=$((pages - $(<"$dir/free_hugepages")))
	if [ "$missing" -gt 0 ]; then
		more "$missing"
		taken=$(($(<"$dir/nr_hugepages") - before))
		echo "taking $taken huge pages of 2 MiB while this runs; they are given back (vm.nr_hugepages was $before)"
	fi
else
	echo "this machine gives no huge pages: what needs them is left out"
fi
"${command[@]}"
