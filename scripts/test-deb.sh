#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Make the packages for a Debian release, and install, upgrade, use and purge them in a fresh root of it.
#
# usage: scripts/test-deb.sh [12|13]     make and test them (default 12)
#        scripts/test-deb.sh --inside    test those of out/deb in this very system, which they leave as it was
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly packages=(drayage libdray0 libdray-dev librte-net-dray)
export DEBIAN_FRONTEND=noninteractive

say() { echo "test-deb: $*"; }

die() {
	echo "test-deb: error: $*" >&2
	exit 1
}

this_release() {
	# shellcheck source=/dev/null
	(. /etc/os-release && echo "${VERSION_ID:-}")
}

apt_get() { apt-get -y -q -o Dpkg::Use-Pty=0 "$@" </dev/null >/tmp/apt.log 2>&1 || {
	tail -n 30 /tmp/apt.log >&2
	die "apt-get $1 failed"
}; }

# older prints the folder of the same packages under a lower version: this tests what the packages'
# scripts do while chains are up. Files of an older version are in internal/node/testdata/older.
older() {
	local folder=$1 to deb work
	to=$(mktemp -d)
	for deb in "$folder"/*.deb; do
		work=$(mktemp -d)
		dpkg-deb --raw-extract "$deb" "$work"
		sed -i -E 's/^Version: .*/Version: 0.0.1-1/; s/\(= [^)]*\)/(= 0.0.1-1)/g' "$work/DEBIAN/control"
		dpkg-deb --root-owner-group --build "$work" "$to" >/dev/null
		rm -rf "$work"
	done
	echo "$to"
}

# ours lists every file of this system that is named after Drayage, but for this source tree.
ours() {
	find / -xdev \( -path /proc -o -path /sys -o -path /root -o -path /tmp -o -path /var/cache/apt -o -path /var/log \) -prune -o -iname '*dray*' -print
	find /run /sys/fs/cgroup -iname '*dray*' ! -path '*dray-fresh*' ! -path '/run/lock/*' -print 2>/dev/null || true
}

accounts() { cut -d: -f1 /etc/passwd /etc/group | { grep -i dray || true; }; }

# use runs the installed programs.
use() {
	local status=0 unit=/lib/systemd/system/dray@.service start stop
	[ -e "$unit" ] || unit=/usr/lib/systemd/system/dray@.service
	[ "$(type -P dray)" = /usr/bin/dray ] || die "dray is $(type -P dray || echo 'not in the PATH')"
	dray --version
	grep -q "DPDK ABI .*/dpdk/pmds-" <<<"$(dray version)" || die "the driver is not found: $(dray version)"
	grep -q 'libdray\.so\.0 ' <<<"$(ldconfig -p)" || die "the loader does not know libdray"
	test -s /usr/share/man/man1/dray-run.1.gz -a -s /usr/share/bash-completion/completions/dray || die "there is no manual page or completion"
	# The plugin of kubectl. There is no kubectl, so this asks what kubectl would ask.
	grep -q '^dray ' <<<"$(kubectl-dray version)" || die "kubectl-dray is not dray: $(kubectl-dray version)"
	grep -q '^status' <<<"$(kubectl-dray __complete '')" || die "kubectl-dray completes nothing"
	test -s /usr/share/doc/drayage/examples/prometheus/rules.yml || die "there are no rules for Prometheus"
	test -x /usr/bin/kubectl_complete-dray -a -s /usr/share/man/man1/kubectl-dray-run.1.gz || die "the plugin has no completion or manual page"
	dray doctor >/dev/null
	local example=/usr/share/doc/drayage/examples/f1-split.yaml
	say "dray run $example"
	dray run "$example" --profile quick --out /tmp/run || status=$?
	case $status in
	0 | 4 | 5) ;; # a verdict, which is about the machine
	*) die "dray run ended with status $status" ;;
	esac
	test -s /tmp/run/report.html || die "dray run wrote no page"
	rm -rf /tmp/run

	say "the commands of dray@f1-split.service"
	cp "$example" /etc/drayage/
	start=$(sed -n 's/^ExecStart=//p' "$unit")
	stop=$(sed -n 's/^ExecStop=//p' "$unit")
	${start//%i/f1-split}
	grep -q '^chain f1-split  *up ' <<<"$(dray status)" || die "the chain is not up: $(dray status)"
	${stop//%i/f1-split}
	if type -P systemd-analyze >/dev/null; then
		systemd-analyze verify "$unit" 2>&1 | grep -i dray && die "systemd-analyze complains"
	fi
	# One stays up, so that removing the package has to take it down.
	${start//%i/f1-split}
}

# upgrade installs the packages of a folder while a chain is up. The chain stays as it is, and is known.
upgrade() {
	local folder=$1 example=/usr/share/doc/drayage/examples/f1-split.yaml before
	dray up "$example"
	before=$(grep '"pid"' /run/dray/f1-split/status.json)
	apt_get install "$folder"/*.deb
	grep -q '^chain f1-split  *up ' <<<"$(dray status)" || die "after the upgrade the chain is not up: $(dray status)"
	[ "$(grep '"pid"' /run/dray/f1-split/status.json)" = "$before" ] || die "the upgrade has ended processes of a chain"
	dray gc
	grep -q 'nothing to change' <<<"$(dray apply "$example")" || die "the upgraded dray takes the chain for another"
	dray down f1-split
	[ ! -e /run/dray/f1-split ] || die "the upgraded dray leaves an older chain"
}

inside() {
	local folder old before
	folder=$PWD/out/deb/$(this_release)
	[ -d "$folder" ] || die "there are no packages in $folder: make deb"
	[ -z "$(ours)" ] || die "this system has Drayage already: $(ours | head)"
	apt_get update
	before=$(accounts)
	say "installing the packages under a lower version, and upgrading them"
	old=$(older "$folder")
	chmod -R a+rX "$old"
	apt_get install "$old"/*.deb
	upgrade "$folder"
	rm -rf "$old"
	for package in "${packages[@]}"; do
		dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\n' "$package"
		[ "$(dpkg-query -W -f '${Version}' "$package")" = "$(dpkg-deb -f "$folder/${package}"_*.deb Version)" ] || die "$package was not upgraded"
	done
	[ -z "$(dpkg --verify "${packages[@]}")" ] || die "files differ: $(dpkg --verify "${packages[@]}")"
	use
	say "purging"
	apt_get purge "${packages[@]}"
	rm -f /etc/drayage/f1-split.yaml # the administrator's own
	rmdir /etc/drayage 2>/dev/null || true
	[ -z "$(ours)" ] || die "purging leaves: $(ours)"
	[ "$(accounts)" = "$before" ] || die "purging leaves accounts"
	[ -z "$(ip netns list 2>/dev/null)" ] || die "purging leaves network namespaces"
	say "installed, upgraded, used and purged; nothing is left"
}

case ${1:-12} in
--inside) inside ;;
12 | 13)
	release=${1:-12}
	if [ "$(this_release)" = "$release" ]; then
		scripts/deb.sh
	else
		scripts/fresh.sh "$release" deb
	fi
	scripts/fresh.sh "$release" check-deb
	;;
*) die "unknown Debian release '$1': 12 or 13" ;;
esac
