#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Print the flags that all C code here shares, one a line: those of the compiler, or those of the linker. SANITIZERS is a list as
# meson's b_sanitize has it, LEVEL its optimization, CPU its cpu_family. test/hardening looks at what the hardening flags made.
#
# usage: flags.sh compile|link SANITIZERS|none LEVEL CPU
set -euo pipefail
readonly kind=$1 sanitizers=$2 level=$3 cpu=$4
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
flags=()

# shared are warnings that warning_level=2 leaves out, and no symbol exported by default.
shared() {
	flags+=(-D_GNU_SOURCE -fvisibility=hidden -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes)
	case $sanitizers in *undefined*) flags+=(-fno-sanitize-recover=all) ;; esac
	# ThreadSanitizer does not see fences, and gcc warns of each. Fences order shared words against each other; what ThreadSanitizer
	# must see is ordered by acquire and release. clang does not know the warning.
	case $sanitizers in *thread*) flags+=(-Wno-unknown-warning-option -Wno-tsan) ;; esac
}

# hardened are protections of what is shipped, and the same bytes from any folder.
hardened() {
	flags+=(-fstack-protector-strong "-ffile-prefix-map=$root/=")
	case $cpu in
	x86_64) flags+=(-fcf-protection=full) ;;
	aarch64) flags+=(-mbranch-protection=standard) ;;
	esac
	# Fortified functions need the optimizer. A distribution's own level stays.
	case "$level ${CPPFLAGS-} ${CFLAGS-}" in
	*_FORTIFY_SOURCE* | 0* | plain*) ;;
	*) flags+=(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3) ;;
	esac
}

case $kind in
compile)
	shared
	# Sanitizers check the same and more, and see less of fortified functions.
	[ "$sanitizers" != none ] || hardened
	;;
link) flags+=('-Wl,-z,relro' '-Wl,-z,now' '-Wl,-z,noexecstack' '-Wl,-z,text') ;;
*)
	echo "flags: error: '$kind' is neither compile nor link" >&2
	exit 2
	;;
esac
printf '%s\n' "${flags[@]}"
