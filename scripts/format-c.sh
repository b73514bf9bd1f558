#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Format the C code as dataplane/.clang-format says.
# Another major version of clang-format breaks some lines differently, so only one version formats and checks: that of Debian 12.
#
# usage: scripts/format-c.sh [--check]
#   --check  change nothing; fail and name the files if any is not formatted
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly version=14 style=file:dataplane/.clang-format

# The files to format. The benches are left out.
list() {
	git -c safe.directory='*' ls-files 'dataplane/*.c' 'dataplane/*.h' 'images/*.c' 'images/*.h' ':!dataplane/*/bench/*'
}

found=$(clang-format --version | sed -n 's/.*version \([0-9]*\).*/\1/p')
if [ "$found" != "$version" ]; then
	echo "not checked: this is clang-format $found, but the code is formatted with $version"
	exit 0
fi
mapfile -t files < <(list)
if [ "${1:-}" = --check ]; then
	unformatted=()
	for file in "${files[@]}"; do
		clang-format --style="$style" "$file" | cmp -s - "$file" || unformatted+=("$file")
	done
	[ ${#unformatted[@]} -eq 0 ] || {
		printf '%s\n' 'not formatted; run scripts/format-c.sh for:' "${unformatted[@]}"
		exit 1
	}
else
	clang-format --style="$style" -i "${files[@]}"
fi
