#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build what the cluster is made of into the user's cache, unless it is there. The folder is the only line on stdout:
# its name changes with each version, build flag and Go toolchain, and nothing appears in it later.
#
# usage: kube/cluster/build.sh programs|images
#   programs  bin/ (Kubernetes, containerd, runc, cnitool) and cni/ (the standard CNI plugins); from nothing this
#             takes 5 minutes on two idle cores and 25 on busy ones, and 8 GB in Go's own caches
#   images    pause.tar and busybox.tar, the images that a cluster without a registry needs
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dray/kube
readonly here repository cache
readonly kept_days=30 # a build that was not used for so long is removed when another one is added

# The Go of the modules' go lines: a toolchain that is too old fetches a newer one as a module.
export GOTOOLCHAIN=auto GOFLAGS=-buildvcs=false GOWORK=off CGO_ENABLED=0

say() { echo "build: $*" >&2; }
die() {
	say "error: $*"
	exit 1
}

version() { awk -v folder="$1" '$1 == folder { print $3 }' "$here/versions"; }

# compile builds every program that a module's go.mod names: compile OUT MODULE LDFLAGS [go build option...]
compile() {
	local out=$1 module=$2 ldflags=$3 begin=$SECONDS
	shift 3
	say "$module $(version "$module")"
	mkdir -p "$out"
	(cd "$here/modules/$module" && "$go" build -v -trimpath -mod=readonly -ldflags "-s -w $ldflags" -o "$out/" "$@" tool 2>&1) | progress "$module"
	say "$module: done in $((SECONDS - begin)) s"
}

# progress counts the packages that go compiles, also while it says nothing, and shows everything else that it says.
progress() {
	local line status count=0 begin=$SECONDS shown=$SECONDS
	while :; do
		status=0
		read -r -t 10 line || status=$?
		[ "$status" -eq 0 ] || [ "$status" -gt 128 ] || return 0 # above 128, the time was up
		case $status:$line in
		'0:go: downloading '* | '0:# '*) ;;
		0:*' '*) say "$line" ;;
		0:*) count=$((count + 1)) ;;
		esac
		((SECONDS - shown < 30)) || { shown=$SECONDS && say "$1: $count packages compiled after $((shown - begin)) s"; }
	done
}

programs() {
	local out=$1 v minor
	say "from nothing this takes 5 minutes on two idle cores, 25 on busy ones"
	v=$(version kubernetes)
	minor=${v#v1.}
	compile "$out/bin" kubernetes "-X k8s.io/component-base/version.gitVersion=$v -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=${minor%%.*}"
	compile "$out/bin" containerd "-X github.com/containerd/containerd/v2/version.Version=$(version containerd)" -tags no_btrfs,no_devmapper,no_zfs,no_aufs
	# runc enters namespaces in C, and without libseccomp no pod can have a seccomp profile.
	CGO_ENABLED=1 compile "$out/bin" runc "-X main.version=$(version runc)" -tags seccomp
	compile "$out/bin" cnitool ""
	compile "$out/cni" plugins ""
}

images() {
	local out=$1 work=$1/.work
	mkdir -p "$work"/pause "$work"/busybox/{bin,dev,etc,proc,run,sys,tmp}
	(cd "$repository/kube/image" && "$go" build -trimpath -o "$work/mkimage" ./mkimage)
	gcc -Os -static -s -o "$work/pause/pause" "$here/pause.c"
	"$work/mkimage" dray.local/pause:1 "$work/pause" "$out/pause.tar" /pause
	busybox "$work/busybox"
	"$work/mkimage" dray.local/busybox:1 "$work/busybox" "$out/busybox.tar"
	rm -rf "$work"
}

# busybox fills a folder with this machine's busybox, the libraries it is linked with, and a link for each applet.
busybox() {
	local root=$1 program library applet
	program=$(type -P busybox) || die "no busybox; as root, run: scripts/setup.sh kube"
	install -m 755 "$program" "$root/bin/busybox"
	while read -r library; do
		install -D -m 755 "$library" "$root$library"
	done < <(ldd "$program" 2>/dev/null | grep -oE '/[^ ]+' || true)
	while read -r applet; do
		[ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
	done < <("$program" --list)
	chmod 1777 "$root/tmp"
	printf 'root:x:0:0::/:/bin/sh\napp:x:1000:1000::/:/bin/sh\n' >"$root/etc/passwd"
	printf 'root:x:0:\napp:x:1000:\n' >"$root/etc/group"
}

# needs fails if a program is missing, with what installs it.
needs() {
	local program
	for program in "$@"; do
		type -P "$program" >/dev/null || die "no $program; as root, run: scripts/setup.sh kube"
	done
}

# The names depend on everything that the results do. The text of a function has its flags, and no comments.
programs_key() {
	local goversion
	goversion=$(cd "$here/modules/kubernetes" && "$go" env GOVERSION)
	echo "programs-$(version kubernetes)-$goversion-$(
		{
			cat "$here"/versions "$here"/modules/*/go.{mod,sum}
			declare -f compile programs
			uname -m
		} | short_sum
	)"
}

images_key() {
	needs busybox
	echo "images-$(
		{
			cat "$here/pause.c" "$repository"/kube/image/{go.mod,image.go,layer.go,mkimage/main.go} "$(type -P busybox)"
			declare -f images busybox
		} | short_sum
	)"
}

short_sum() { sha256sum | cut -c1-12; }

# build makes a folder of the cache under another name first, so that it is complete when it appears.
build() {
	local what=$1 target=$2 work begin=$SECONDS
	needs gcc pkg-config
	pkg-config --exists libseccomp || die "no libseccomp; as root, run: scripts/setup.sh kube"
	rm -rf "$cache"/.new.* # of a build that was killed
	work=$(mktemp -d "$cache/.new.XXXXXX")
	chmod 755 "$work"
	"$what" "$work"
	mv -T "$work" "$target"
	find "$cache" -mindepth 1 -maxdepth 1 -type d -mtime "+$kept_days" -exec rm -rf {} +
	say "built $what in $((SECONDS - begin)) s: $target, $(du -sm "$target" | cut -f1) MB"
}

main() {
	local what=$1 target lock
	go=$("$repository/scripts/find-go.sh")
	target=$cache/$("${what}_key")
	if [ ! -d "$target" ]; then
		mkdir -p "$cache"
		exec {lock}<"$cache"
		flock --nonblock "$lock" || { say "waiting for another build" && flock "$lock"; }
		[ -d "$target" ] || build "$what" "$target"
		exec {lock}<&-
	fi
	touch "$target" # used now
	echo "$target"
}

case ${1:-} in
programs | images) main "$1" ;;
*)
	sed -n 's/^# \{0,1\}//; 3,9p' "${BASH_SOURCE[0]}" >&2
	exit 2
	;;
esac
