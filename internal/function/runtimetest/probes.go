// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// probes are what a function must not be able to do. A call that moby's profile
// does not know may return ENOSYS, so "unsupported" counts only on the host.
var probes = []probe{
	{name: "hold capabilities", script: static(`
		open my $f, "<", "/proc/self/status" or refused; my $n = 0;
		while (<$f>) { $n++ if /^Cap(Inh|Prm|Eff|Bnd|Amb):\s*0*[1-9a-f]/ } $n ? yes : refused("all capability sets are empty")`)},
	{name: "run without seccomp", script: static(`
		local $/; open my $f, "<", "/proc/self/status" or refused; <$f> =~ /^Seccomp:\s*2$/m ? refused("filtered") : yes`)},
	{name: "gain privileges by exec", script: static(`
		local $/; open my $f, "<", "/proc/self/status" or refused; <$f> =~ /^NoNewPrivs:\s*1$/m ? refused("no_new_privs") : yes`)},
	{name: "see PCI devices", script: static(`
		my @e = (glob("/sys/bus/pci/*"), glob("/sys/bus/cpu/*"), glob("/sys/devices/pci*/*")); @e ? yes : refused("empty")`)},
	{name: "read shadow", script: static(`open(my $f, "<", "/etc/shadow") ? yes : refused`)},
	{name: "see homes", script: scriptf(`opendir(my $d, "%s") ? yes : refused`, func(t target) []any { return []any{t.home} })},
	{name: "see the host's run directory", script: static(`my @e = grep { !m{/(secrets|mount)$} } glob("/run/*"); @e ? yes : refused("empty")`)},
	{name: "see cgroups", script: static(`my @e = grep { -e } glob("/sys/fs/cgroup/*/tasks /sys/fs/cgroup/cgroup.procs"); @e ? yes : refused("empty")`)},
	{name: "read a neighbour's memory", script: scriptf(`
		open my $f, "<", "/proc/%d/mem" or refused; sysseek $f, %s, 0 or refused; my $b = "";
		sysread($f, $b, %d) or refused; $b eq "%s" ? yes : refused("other memory")`,
		func(t target) []any { return []any{t.pid, t.address, len(t.secret), t.secret} })},
	{name: "read a neighbour's memory by system call", script: scriptf(`
		my $b = "\0" x 28; my $to = pack "JJ", unpack("J", pack "p", $b), 28; my $from = pack "JJ", %s, 28;
		syscall(%d, %d, $to, 1, $from, 1, 0) == 28 && $b eq "%s" ? yes : refused`,
		func(t target) []any { return []any{t.address, unix.SYS_PROCESS_VM_READV, t.pid, t.secret} })},
	{name: "see a neighbour's processes", script: static(`
		for (glob "/proc/[0-9]*/cmdline") { open my $f, "<", $_ or next; local $/; yes if (<$f> // "") =~ /dray\x20secret\x20of/ } refused("not there")`)},
	{name: "signal a neighbour", script: scriptf(`kill(0, %d) ? yes : refused`, func(t target) []any { return []any{t.pid} })},
	{name: "connect to a socket of the host", script: scriptf(`
		socket my $s, AF_UNIX, SOCK_STREAM, 0 or refused; connect($s, pack_sockaddr_un("%s")) ? yes : refused`,
		func(t target) []any { return []any{t.socket} })},
	{name: "connect to an abstract socket of the host", script: scriptf(`
		socket my $s, AF_UNIX, SOCK_STREAM, 0 or refused; connect($s, pack_sockaddr_un("\0%s")) ? yes : refused`,
		func(t target) []any { return []any{t.abstract} })},
	{name: "write to the root", script: scriptf(`open(my $f, ">", "%s/file") ? yes : refused`,
		func(t target) []any { return []any{t.openDir} })},
	{name: "write kernel settings", inFunction: true, script: static(`
		open my $f, "+<", "/proc/sys/net/ipv4/ip_forward" or refused; syswrite($f, "1\n") ? yes : refused`)},
	{name: "make device nodes", script: static(`
		my $node = "/tmp/dray-test-node-$$"; my $n = "$node\0";
		my $ok = syscall(` + sys(unix.SYS_MKNODAT) + `, -100, $n, 020666, 0x101) == 0; my $why = $!; unlink $node; $ok ? yes : refused($why)`)},
	{name: "mount", script: static(`
		my $dir = "/tmp/dray-test-mount-$$"; mkdir $dir or refused; my ($s, $t) = ("none\0", "tmpfs\0"); my $d = "$dir\0";
		my $ok = syscall(` + sys(unix.SYS_MOUNT) + `, $s, $d, $t, 0, 0) == 0; my $why = $!;
		syscall(` + sys(unix.SYS_UMOUNT2) + `, $d, 0) if $ok; rmdir $dir; $ok ? yes : refused($why)`)},
	{name: "unshare a user namespace", script: static(`settle(syscall(` + sys(unix.SYS_UNSHARE) + `, ` + sys(unix.CLONE_NEWUSER) + `) == 0)`)},
	{name: "unshare a network namespace", script: static(`settle(syscall(` + sys(unix.SYS_UNSHARE) + `, ` + sys(unix.CLONE_NEWNET) + `) == 0)`)},
	{name: "talk to itself by netlink", script: static(`socket(my $s, 16, 3, 2) ? yes : refused`)},
	{name: "use kernel keyrings", script: static(`settle(syscall(` + sys(unix.SYS_KEYCTL) + `, 0, -3, 1) > 0)`)},
	{name: "use bpf", script: static(`my $a = pack("L4", 2, 4, 4, 1) . "\0" x 56; settle(syscall(` + sys(unix.SYS_BPF) + `, 0, $a, length $a) >= 0)`)},
	{name: "open performance events", script: static(`
		my $a = pack("LLQ", 1, 112, 0) . "\0" x 96; settle(syscall(` + sys(unix.SYS_PERF_EVENT_OPEN) + `, $a, 0, -1, -1, 0) >= 0)`)},
	{name: "load modules", script: static(`
		my $n = "dray_no_such_module\0"; syscall(` + sys(unix.SYS_DELETE_MODULE) + `, $n, 0); $!{ENOENT} ? yes : settle(0)`)},
	{name: "open raw sockets", inFunction: true, script: static(`socket(my $s, AF_INET, SOCK_RAW, 1) ? yes : refused`)},
	{name: "open packet sockets", inFunction: true, script: static(`socket(my $s, 17, SOCK_RAW, 0) ? yes : refused`)},
	{name: "open a socket to the hypervisor", script: static(`settle(syscall(` + sys(unix.SYS_SOCKET) + `, 40, 1, 0) >= 0)`)},
	{name: "open a socket to the hypervisor, by a bit that the kernel ignores", script: static(`
		settle(syscall(` + sys(unix.SYS_SOCKET) + `, 40 + (1 << 32), 1, 0) >= 0)`)},
	{name: "use io_uring", script: static(`my $p = "\0" x 120; settle(syscall(` + sys(unix.SYS_IO_URING_SETUP) + `, 1, $p) >= 0)`)},
	{name: "change its interface", inFunction: true, script: static(`
		socket my $s, AF_INET, SOCK_DGRAM, 0 or refused; my $r = pack "a16s x22", "f1u", 0; ioctl($s, 0x8914, $r) ? yes : refused`)},
	{name: "set the host name", script: static(`
		syscall(` + sys(unix.SYS_UNSHARE) + `, ` + sys(unix.CLONE_NEWUTS) + `); my $n = "dray-test"; settle(syscall(` + sys(unix.SYS_SETHOSTNAME) + `, $n, 9) == 0)`)},
}

func sys(n int) string { return fmt.Sprint(n) }
