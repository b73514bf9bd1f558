#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Write modules/*/go.mod and go.sum from the file versions. Run it after changing a version, and commit the result.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export GOTOOLCHAIN=auto GOFLAGS=-mod=mod GOWORK=off

# replaces prints a replace line for each staging module: kubernetes names them with version v0.0.0, and publishes them as v0.MINOR.PATCH.
replaces() {
	local module=$1 version=$2 file
	[ "$module" = k8s.io/kubernetes ] || return 0
	file=$(cd / && go mod download -json "$module@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
	awk -v v="v0.${version#v1.}" '$2 == "v0.0.0" && $1 ~ /^k8s\.io\// { print "replace " $1 " => " $1 " " v }' "$file" | sort -u
}

# pin writes the go.mod of one folder from nothing, so that versions come from the release alone.
pin() {
	local folder=$1 module=$2 version=$3 program
	shift 3
	mkdir -p "modules/$folder"
	{
		printf 'module github.com/drayage/dray/kube/cluster/modules/%s\n\ngo %s\n\nrequire %s %s\n' "$folder" "$go" "$module" "$version"
		for program in "$@"; do
			[ "$program" = . ] && echo "tool $module" || echo "tool $module/$program"
		done
		replaces "$module" "$version"
	} >"modules/$folder/go.mod"
	rm -f "modules/$folder/go.sum"
	(cd "modules/$folder" && go mod tidy)
	echo "pinned $module $version"
}

go=$(awk '$1 == "go" { print $2 }' versions)
while read -r line; do
	read -ra words <<<"$line"
	pin "${words[@]}"
done < <(grep -vE '^(#|go )' versions)
