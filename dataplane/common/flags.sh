#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Print the compiler flags that all C code here shares, one a line. SANITIZERS is a list as meson's b_sanitize has it.
#
# usage: flags.sh SANITIZERS|none
set -euo pipefail
readonly sanitizers=$1
# Warnings that warning_level=2 leaves out, and no symbol exported by default.
flags=(-D_GNU_SOURCE -fvisibility=hidden -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes)
case $sanitizers in *undefined*) flags+=(-fno-sanitize-recover=all) ;; esac
# ThreadSanitizer does not see fences, and gcc warns of each. Fences order shared words against each other; what ThreadSanitizer
# must see is ordered by acquire and release. clang does not know the warning.
case $sanitizers in *thread*) flags+=(-Wno-unknown-warning-option -Wno-tsan) ;; esac
printf '%s\n' "${flags[@]}"
