#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Install what Drayage needs on Debian 12 or 13, and nothing that is there already.
#
# usage: scripts/setup.sh run|test|deb|kube|experiments
#   run   what `make demo` needs
#   test  that, and what `make test` and `make experiments` need
#   deb   what `make demo` and `make deb` need
#   kube  what `make demo` and `make kube` need
#   experiments  what `make demo` and `make experiments` need
#
# It may be run again at any time. It never upgrades a package, never changes
# a file under /etc/apt that it did not write, and starts no service.
set -euo pipefail

# One line a need: the program that must be found, then its Debian package.
readonly run_needs='
gcc         gcc
meson       meson
ninja       ninja-build
pkg-config  pkgconf
dpkg-source dpkg-dev
dpdk-testpmd dpdk-dev
git         git
ip          iproute2
tc          iproute2
ping        iputils-ping
runc        runc
ovs-vsctl    openvswitch-switch
ovs-vswitchd openvswitch-switch
ovs-ofctl    openvswitch-common
ovsdb-server openvswitch-common
ovsdb-tool   openvswitch-common
/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk openvswitch-switch-dpdk
iperf       iperf
iperf3      iperf3
sockperf    sockperf
qperf       qperf
'
readonly test_needs='
aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
ccache        ccache
chromium      chromium
clang         clang
clang-format  clang-format
containerd    containerd
ethtool       ethtool
make          make
osmo-ggsn     osmo-ggsn
sgsnemu       osmo-ggsn
pgrep         procps
prometheus    prometheus
promtool      prometheus
redis-cli     redis-tools
redis-server  redis-server
scapy         python3-scapy
shellcheck    shellcheck
tcpdump       tcpdump
tshark        tshark
valgrind      valgrind
xz            xz-utils
'
readonly deb_needs='
dh        debhelper
lintian   lintian
'
readonly kube_needs='
busybox   busybox-static
etcd      etcd-server
openssl   openssl
pgrep     procps
redis-server redis-server
'
# What the rows of experiments measure with.
readonly experiments_needs='
cpio          cpio
cyclictest    rt-tests
depmod        kmod
dockerd       docker.io
docker        docker-cli
mmdebstrap    mmdebstrap
oslat         rt-tests
qemu-system-x86_64 qemu-system-x86
redis-server  redis-server
stress-ng     stress-ng
'

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly backports_list=/etc/apt/sources.list.d/dray-backports.list
readonly policy=/usr/sbin/policy-rc.d
readonly policy_mark='# written by scripts/setup.sh of Drayage for the time of an installation'
readonly ca_bundle=/etc/ssl/certs/ca-certificates.crt
readonly lock_timeout=30 # seconds that one attempt waits for another dpkg

# Some users' PATH leaves out the system programs.
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 GOTOOLCHAIN=local

say() { echo "setup: $*"; }

die() {
	echo "setup: error: $1" >&2
	echo "setup: fix: $2" >&2
	exit 1
}

usage() {
	sed -n 's/^# \{0,1\}//; 5,10p' "${BASH_SOURCE[0]}" >&2
	exit 2
}

# missing_needs prints "program package" for each need that is not met.
missing_needs() {
	local program package
	while read -r program package; do
		[ -n "$program" ] || continue
		type -P "$program" >/dev/null || echo "$program $package"
	done <<<"$1"
	[ -s "$ca_bundle" ] || echo "$ca_bundle ca-certificates"
	[ -e /usr/include/stdlib.h ] || echo "/usr/include/stdlib.h libc6-dev"
	compgen -G '/usr/lib/*/pkgconfig/libdpdk.pc' >/dev/null || echo "libdpdk.pc libdpdk-dev"
	compgen -G '/usr/lib/*/pkgconfig/usrsctp.pc' >/dev/null || echo "usrsctp.pc libusrsctp-dev"
	if [ "$set" = kube ]; then
		compgen -G '/usr/lib/*/pkgconfig/libseccomp.pc' >/dev/null || echo "libseccomp.pc libseccomp-dev"
	fi
	if [ "$set" = test ]; then
		[ -e /usr/include/zmq.h ] || echo "/usr/include/zmq.h libzmq3-dev"
		[ -e /usr/include/netinet/sctp.h ] || echo "netinet/sctp.h libsctp-dev"
		[ -e /usr/share/i18n/locales/de_DE ] || echo "/usr/share/i18n/locales/de_DE locales"
		[ -e /usr/aarch64-linux-gnu/include/stdlib.h ] || echo "/usr/aarch64-linux-gnu/include/stdlib.h libc6-dev-arm64-cross"
		# libFuzzer and the sanitizers of clang are a package of their own, and named after its version.
		compgen -G "$(clang -print-resource-dir 2>/dev/null)/lib/linux/libclang_rt.fuzzer-*.a" >/dev/null ||
			echo "libclang_rt.fuzzer libclang-rt"
	fi
	# dockerd loads a profile where the kernel has AppArmor, and docker.io only recommends the program.
	if [[ $1 == *dockerd* && $(cat /sys/module/apparmor/parameters/enabled 2>/dev/null) == Y ]]; then
		type -P apparmor_parser >/dev/null || echo "apparmor_parser apparmor"
	fi
	"$here/find-go.sh" >/dev/null 2>&1 || echo "go golang"
}

# apt_get runs apt-get, waits for whoever else holds apt's locks, and tries a
# failed download again.
apt_get() {
	local log attempt
	log=$(mktemp)
	for attempt in {1..20}; do
		if apt-get -y -q -o DPkg::Lock::Timeout="$lock_timeout" -o Acquire::Retries=3 \
			-o Dpkg::Use-Pty=0 -o APT::Install-Recommends=false "$@" >"$log" 2>&1 </dev/null &&
			! grep -q 'Some index files failed to download' "$log"; then
			rm -f "$log"
			return 0
		fi
		say "apt-get $1: attempt $attempt failed: $(grep -m1 -E '^(E|W|Err)' "$log" || tail -n1 "$log")"
		if grep -q 'Could not get lock' "$log"; then
			sleep 10
		elif grep -qE 'Failed to fetch|index files failed' "$log" && [ "$attempt" -lt 3 ]; then
			sleep 3
		else
			break
		fi
	done
	sed 's/^/  apt: /' "$log" | tail -n 30 >&2
	rm -f "$log"
	return 1
}

has_candidate() {
	[[ $(apt-cache policy "$1") =~ Candidate:\ [^\(] ]]
}

# repository prints the address from which this machine gets the Debian
# release itself: a mirror or a snapshot serves the backports as well.
repository() {
	# shellcheck disable=SC2016 # apt expands these
	apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
		awk -v c="$codename" '$1 == c && $2 == "main" { print $3; exit }'
}

add_backports() {
	local uri options="signed-by=/usr/share/keyrings/debian-archive-keyring.gpg"
	uri=$(repository)
	[ -n "$uri" ] || die "no apt source for $codename main was found to derive $codename-backports from" \
		"add $codename-backports to /etc/apt/sources.list.d, or install Go 1.23 or later in /usr/local/go"
	# The Release file of a snapshot is past its date.
	[[ $uri != *snapshot.debian.org* ]] || options+=" check-valid-until=no"
	say "adding $backports_list: Go 1.23 is in $codename-backports"
	printf '# %s\n%s\n' "written by scripts/setup.sh of Drayage, for Go 1.23; may be removed" \
		"deb [$options] $uri $codename-backports main" >"$backports_list"
	apt_get update || true # what counts is whether the package is there now
	if ! has_candidate "$go_package"; then
		rm -f "$backports_list"
		die "$codename-backports could not be read from $uri" "install Go 1.23 or later in /usr/local/go, and run this again"
	fi
}

# prepare_go makes sure that apt knows a package with Go, and names it.
prepare_go() {
	if [ "$release" -ge 13 ]; then
		go_package=golang-go
		return
	fi
	go_package=golang-1.23-go
	has_candidate "$go_package" || add_backports
}

# hold_services keeps packages from starting their daemons while they are
# installed: Drayage starts its own, in their own namespaces.
hold_services() {
	if [ -e "$policy" ] && ! grep -qF "$policy_mark" "$policy"; then
		return # the machine has a policy of its own
	fi
	trap release_services EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	printf '#!/bin/sh\n%s\nexit 101\n' "$policy_mark" >"$policy"
	chmod 755 "$policy"
}

release_services() {
	if [ -e "$policy" ] && grep -qF "$policy_mark" "$policy"; then
		rm -f "$policy"
	fi
}

# packages_for prints the packages for the missing needs, each once.
packages_for() {
	local program package
	while read -r program package; do
		case $package in
		golang) echo "$go_package" ;;
		libclang-rt) [ "$release" -ge 13 ] && echo libclang-rt-19-dev || echo libclang-rt-14-dev ;;
		# Debian 12 has the docker command in docker.io.
		docker-cli) [ "$release" -ge 13 ] && echo docker-cli || echo docker.io ;;
		*) echo "$package" ;;
		esac
	done <<<"$1" | sort -u
}

check_candidates() {
	local package
	for package in "$@"; do
		has_candidate "$package" || die "Debian package $package is in none of this machine's apt sources" \
			"enable \"$codename main\" and \"$codename-security main\" in /etc/apt (see apt-cache policy $package)"
	done
}

install_packages() {
	local package summary absent=()
	say "installing: $*"
	# With --assume-no apt-get tells the size, and fails.
	summary=$(apt-get install --assume-no --no-install-recommends "$@" 2>/dev/null) || true
	[[ ! $summary =~ Need\ to\ get\ [^$'\n']*archives ]] || say "${BASH_REMATCH[0],}"
	hold_services
	if ! apt_get install "$@"; then
		for package in "$@"; do
			[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || absent+=("$package")
		done
		die "apt-get could not install: ${absent[*]:-$*}" "read apt's messages above; then: apt-get -f install; scripts/setup.sh $set"
	fi
	release_services
}

read_release() {
	# shellcheck source=/dev/null
	id=$(. /etc/os-release && echo "${ID:-unknown}")
	# shellcheck source=/dev/null
	release=$(. /etc/os-release && echo "${VERSION_ID:-0}")
	# shellcheck source=/dev/null
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-unknown}")
	if [ "$id" != debian ] || { [ "$release" != 12 ] && [ "$release" != 13 ]; }; then
		echo "setup: still needed (program, Debian's package):" >&2
		printf '  %s\n' "${missing//$'\n'/$'\n'  }" >&2
		die "this script supports Debian 12 and 13, but this is $id $release" "install the programs above by hand (Go from 1.23 on)"
	fi
}

[ $# -eq 1 ] || usage
set=$1
case $set in
run) needs=$run_needs ;;
test) needs=$run_needs$experiments_needs$test_needs ;;
deb) needs=$run_needs$deb_needs ;;
kube) needs=$run_needs$kube_needs ;;
experiments) needs=$run_needs$experiments_needs ;;
*) usage ;;
esac
readonly set needs

missing=$(missing_needs "$needs")
if [ -z "$missing" ]; then
	say "everything that '$set' needs is installed; Go: $("$here/find-go.sh")"
	exit 0
fi
read_release
say "missing: $(awk '{ print $1 }' <<<"$missing" | paste -sd' ')"
[ "$(id -u)" -eq 0 ] || die "only root can install packages" "run as root: scripts/setup.sh $set"

say "reading package lists"
apt_get update || say "warning: some sources could not be read; continuing with apt's existing lists"
[[ $missing != *golang ]] || prepare_go
packages=$(packages_for "$missing")
mapfile -t packages <<<"$packages"
check_candidates "${packages[@]}"
install_packages "${packages[@]}"

missing=$(missing_needs "$needs")
[ -z "$missing" ] || die "after installation these are still missing: $missing" "report this, with the Debian version"
say "done; Go: $("$here/find-go.sh")"
