#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Check dray@.service under a real systemd: boot Debian's kernel in an emulated machine
# with this host's systemd as its first process, install the programs and the unit there,
# and start, restart, kill and stop a chain. The machine sees this host's files and keeps
# nothing. Its root is an overlay; it has cgroup v2 alone, and no IPv6. Needs bin/dray (make build), runc, QEMU, cpio and root.
#
# usage: scripts/unit-guest.sh      (DRAY_UNIT_PATIENCE=1800: how many seconds the machine may take)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly unit=dray@f1-split.service patience=${DRAY_UNIT_PATIENCE:-1800}
readonly modules=(virtio_pci 9p 9pnet_virtio overlay virtio_rng)
readonly passed='all checks of the unit passed'

die() {
	echo "unit-guest: error: $*" >&2
	exit 1
}

say() { echo "unit-guest: $*"; }

# with_libraries copies programs, and the libraries that they load, to a root.
with_libraries() {
	local root=$1 file
	shift
	for file in "$@"; do
		cp --parents -L "$file" "$root"
		ldd "$file" | grep -o '/[^ ]*' | while read -r file; do cp --parents -L -n "$file" "$root"; done
	done
}

# initramfs writes what mounts this host's root, an overlay above it, and starts systemd.
initramfs() {
	local root=$1 tree=$2 name module
	mkdir -p "$root"/{proc,sys,dev,run,lower,upper,root,usr/bin,usr/sbin}
	ln -s usr/bin usr/sbin "$root"
	with_libraries "$root" "$(command -v sh)" "$(command -v mount)" "$(command -v mkdir)" "$(command -v cp)" "$(command -v rm)" "$(command -v insmod)" "$(command -v switch_root)"
	{
		echo '#!/bin/sh'
		echo 'set -e; export PATH=/usr/sbin:/usr/bin:/sbin:/bin'
		echo 'mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev'
		for name in "${modules[@]}"; do
			while read -r module; do
				cp -n "$module" "$root/"
				echo "insmod /${module##*/} 2>/dev/null || true" # it can be there already
			done < <(modprobe -d "$tree" -S "$kernel" --show-depends "$name" | sed -n 's/^insmod \([^ ]*\).*/\1/p')
		done
		echo 'mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose root /lower'
		echo 'mount -t tmpfs -o mode=755 tmpfs /upper; mkdir /upper/root /upper/work'
		echo 'mount -t overlay -o lowerdir=/lower,upperdir=/upper/root,workdir=/upper/work overlay /root'
		echo "mkdir -p /root/lib/modules/$kernel"
		echo "mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose modules /root/lib/modules/$kernel"
		echo 'mount -t tmpfs -o mode=1777 tmpfs /root/tmp' # systemd empties it, which takes long over 9p
		echo 'rm -rf /root/etc/systemd/system/*.wants /root/etc/rc?.d' # what this host starts at boot
		echo 'rm -f /root/.dockerenv' # systemd would find itself in a container
		echo 'cp -r /files/. /root/'
		echo 'exec switch_root /root /lib/systemd/systemd'
	} >"$root/init"
	chmod +x "$root/init"
}

# files puts what is installed in the machine into a folder: the programs, the unit, a
# chain, and a target that starts nothing of this host's but runs the checks.
files() {
	local root=$1
	mkdir -p "$root"/{usr/bin,etc/drayage,etc/systemd/system}
	install -t "$root/usr/bin" bin/dray bin/dray-guest
	install scripts/unit-guest.sh "$root/usr/bin/unit-checks"
	install -m 644 examples/f1-split.yaml "$root/etc/drayage/"
	install -m 644 debian/drayage.dray@.service "$root/etc/systemd/system/dray@.service"
	: >"$root/etc/fstab"
	cat >"$root/etc/systemd/system/checks.target" <<-'UNIT'
		[Unit]
		Requires=basic.target checks.service
		After=basic.target
		AllowIsolate=yes
	UNIT
	cat >"$root/etc/systemd/system/checks.service" <<-'UNIT'
		[Unit]
		After=basic.target
		SuccessAction=poweroff-force
		FailureAction=poweroff-force
		[Service]
		Type=oneshot
		TimeoutStartSec=infinity
		ExecStart=/usr/bin/unit-checks --inside
		StandardOutput=file:/dev/ttyS0
		StandardError=file:/dev/ttyS0
	UNIT
}

outside() {
	local cache=${DRAY_GUEST_CACHE:-/var/cache/dray/guest}/generic program status=0
	[ "$(id -u)" = 0 ] || die "must be root; try sudo"
	[ -x bin/dray ] || die "bin/dray is missing: make build"
	[ -x /lib/systemd/systemd ] || die "this host has no systemd"
	for program in qemu-system-x86_64 cpio runc modprobe switch_root; do
		command -v "$program" >/dev/null || die "$program is missing: scripts/setup.sh test"
	done
	compgen -G "$cache/boot/vmlinuz-*" >/dev/null || bin/dray -q lab --guest -- true
	kernel=$(basename "$cache"/boot/vmlinuz-*)
	kernel=${kernel#vmlinuz-}
	work=$(mktemp -d /var/tmp/dray-unit-XXXXXX)
	trap 'rm -rf "$work"' EXIT
	initramfs "$work/root" "$cache"
	files "$work/root/files"
	(cd "$work/root" && find . | cpio --quiet -o -H newc) >"$work/initramfs"
	touch "$work/console"
	tail -f -n +1 --pid=$$ "$work/console" | sed -u -n 's/^unit-guest: \(.*\)\r$/\1/p' &
	timeout "$patience" qemu-system-x86_64 -name dray-unit -machine q35,accel=tcg -cpu max -m 2G \
		-nodefaults -no-user-config -no-reboot -display none -sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny \
		-kernel "$cache/boot/vmlinuz-$kernel" -initrd "$work/initramfs" \
		-append "console=ttyS0 panic=-1 quiet systemd.show_status=0 no_timer_check cryptomgr.notests systemd.unit=checks.target systemd.mask=network-online.target systemd.hostname=dray-unit ipv6.disable=1 rw" \
		-serial "file:$work/console" -device virtio-rng-pci \
		-virtfs "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap" \
		-virtfs "local,path=$cache/lib/modules/$kernel,mount_tag=modules,security_model=none,readonly=on" </dev/null || status=$?
	sleep 1 # tail prints the rest
	kill "$(jobs -p)" 2>/dev/null || true
	if ! grep -q "$passed" "$work/console"; then
		tail -n 30 "$work/console" | cut -c1-200 >&2
		die "a check failed, or the machine did not end within $patience s (status $status)"
	fi
}

# process prints the pid of dray's process with a sub-command.
process() { pgrep -f "^/usr/bin/dray $1 f1-split\$" || true; }

# left lists what a chain leaves: processes, mounts, cgroups, namespaces, interfaces, state.
# A running function has the whole host mounted below its state, which is not searched.
left() {
	pgrep -a 'dray|runc' || true
	grep dray /proc/self/mounts || true
	find /sys/fs/cgroup -type d -path '*/dray/*' -print
	find /run/netns /run/dray -xdev -mindepth 1 ! -name .lock 2>/dev/null || true
	ip -o link show | grep -v ' lo:' || true
	ip netns list
}

wants() { # what is, what should be, description
	[ "$1" = "$2" ] || die "$3: \"$1\" instead of \"$2\"; $(systemctl status --no-pager -n 20 "$unit" 2>&1 || true)"
	say "ok: $3"
}

running() { dray status --color never f1-split | grep -c '^  function .* running' || true; }

inside() {
	local before first supervisor caps
	export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
	say "$(systemctl --version | sed -n 1p), Linux $(uname -r), first process $(cat /proc/1/comm)"
	wants "$(stat -f -c %T / /sys/fs/cgroup | tr '\n' ' ')$(ls /proc/net/if_inet6 2>/dev/null || true)" "overlayfs cgroup2fs " \
		"this host has an overlay as its root, cgroup v2 alone, and no IPv6"
	ip link set lo up
	before=$(left)
	wants "$(systemd-analyze verify --man=no "$unit" 2>&1 | grep -i dray || true)" "" "systemd-analyze finds nothing"
	systemctl start "$unit"
	wants "$(systemctl is-active "$unit") $(running)" "active 2" "start: the unit is active, both functions run"
	wants "$([ "$(left)" != "$before" ] && echo seen)" "seen" "what a running chain has is seen"
	first=$(process supervise)
	caps=$((16#$(awk '/^CapBnd/ { print $2 }' "/proc/$first/status")))
	wants "$(awk '/^(NoNewPrivs|Seccomp):/ { printf "%s ", $2 }' "/proc/$first/status")$((caps >> 16 & 1))" "1 2 0" \
		"the supervisor has no new privileges, a filter, and not CAP_SYS_MODULE"
	systemctl restart "$unit"
	supervisor=$(process supervise)
	wants "$(systemctl is-active "$unit") $(running) $([ -n "$supervisor" ] && [ "$supervisor" != "$first" ] && echo new)" "active 2 new" \
		"restart: the same with a new supervisor"
	kill -KILL "$supervisor"
	sleep 2
	wants "$(dray status --color never f1-split | grep -o 'supervisor  *dead' | tr -s ' ') $(running)" "supervisor dead 2" \
		"SIGKILL of the supervisor: it is reported, and the functions go on"
	systemctl restart "$unit"
	wants "$(systemctl is-active "$unit") $(running) $([ -n "$(process supervise)" ] && echo supervised)" "active 2 supervised" \
		"restart after that: the chain is supervised again"
	systemctl stop "$unit"
	wants "$(systemctl is-active "$unit" || true)" "inactive" "stop: the unit is inactive"
	wants "$(left)" "$before" "stop leaves nothing: no process, mount, cgroup, namespace, interface or state"
	rm /etc/drayage/f1-split.yaml
	wants "$(systemctl start "$unit" 2>/dev/null && echo started)" "" "without its chain file the unit does not start"
	say "$passed"
}

case ${1:-} in
--inside) inside ;;
"") outside ;;
*) die "unknown argument '$1'" ;;
esac
