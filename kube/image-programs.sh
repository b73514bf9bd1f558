# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Copy programs of this machine to the folder of an image; for scripts that write images.

# DPDK's drivers that go with a DPDK application.
readonly dpdk_drivers=(mempool_ring bus_vdev net_memif net_vhost net_virtio)

# libraries prints the files that a file is linked against: none if it is static.
libraries() {
	ldd "$1" 2>/dev/null | awk '$3 ~ /^\// { print $3 } $1 ~ /^\// { print $1 }'
}

# add_files ROOT FILE... copies files to where they are here. Several names of one library stay one file: it would be loaded twice otherwise.
add_files() {
	local root=$1 file real
	for file in "${@:2}"; do
		real=$(realpath "$file")
		install -D "$real" "$root$real"
		[ "$file" = "$real" ] || { mkdir -p "$root${file%/*}" && ln -sfn "$real" "$root$file"; }
	done
}

# add_libraries ROOT PROGRAM DRIVER... copies what a program is linked against, and DPDK's drivers if it is a DPDK application.
add_libraries() {
	local root=$1 program=$2 driver file needed
	mapfile -t needed < <(libraries "$program")
	add_files "$root" "${needed[@]}"
	[[ ${needed[*]} == *librte_ethdev* ]] || return 0
	for driver in "${@:3}"; do
		for file in /usr/lib/*/dpdk/pmds-*/librte_"$driver".so; do
			mapfile -t needed < <(libraries "$file")
			add_files "$root" "$file" "${needed[@]}"
		done
	done
}

# add_programs ROOT PROGRAM... copies programs to /usr/bin of a folder, with what they need.
add_programs() {
	local root=$1 program
	for program in "${@:2}"; do
		install -D "$program" "$root/usr/bin/$(basename "$program")"
		add_libraries "$root" "$program" "${dpdk_drivers[@]}"
	done
}
