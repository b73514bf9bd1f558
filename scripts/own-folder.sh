# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For scripts that source it: folders of one run each, which a killed run leaves to the next one.

# own_folder makes PREFIX-XXXXXX, names it in $folder, and removes those that killed runs have left. A folder stays locked while
# this process, or one that it starts, runs.
own_folder() {
	local prefix=$1 left lock making
	# Nobody looks for what is left while another run is between making its folder and locking it.
	exec {making}<"${prefix%/*}"
	flock "$making"
	for left in "$prefix"-*/; do
		[ -d "$left" ] || continue
		exec {lock}<"$left"
		! flock --nonblock "$lock" || rm -rf "$left"
		exec {lock}<&-
	done
	folder=$(mktemp -d "$prefix-XXXXXX")
	chmod 711 "$folder" # for containers of other users
	exec {lock}<"$folder"
	flock "$lock"
	exec {making}<&-
}
