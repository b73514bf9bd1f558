// SPDX-License-Identifier: Apache-2.0

package published

import (
	"fmt"

	"github.com/drayage/dray/internal/spec/experiment"
)

// check is one thing that a function must not be able to do: a perl program that
// prints "yes" if it could, "no: why" if it was prevented, and "unsupported: why"
// if this machine lacks the feature.
type check struct {
	figure experiment.Figure
	// open tries it without protection in an unprotected function, otherwise on the
	// host.
	open   bool
	script func(target) string
}

// target is what checks aim at: resources of the host and of a neighbour.
type target struct {
	pid       int    // of the neighbour's process, in the host's numbering
	memory    int    // descriptor of its memory file
	huge      int    // the same on huge pages; below 0: none
	secret    string // their content
	address   string // the host's listening abstract socket
	otherCPU  int    // not granted to the function; below 0: none
	otherNode int    // with memory, and none of the granted CPUs; below 0: none
	shadow    string // the host's password hashes, as device:inode
	home      string // its root's home, likewise
	hugePages string // why no huge page limit can be tried; empty: it can
}

// prologue has the ends of a check, and the numbers of calls that perl cannot
// name.
const prologue = `use Socket; use POSIX ();
sub yes { print "yes\n"; exit } sub refused { print "no: ", (shift // $!), "\n"; exit } sub unsupported { print "unsupported: ", @_, "\n"; exit }
my %nr = (x86_64 => [319, 9, 203, 238], aarch64 => [279, 222, 122, 237]); my ($memfd_create, $mmap, $setaffinity, $set_mempolicy) = @{ $nr{(POSIX::uname())[4]} // [-1, -1, -1, -1] };
`

func fixed(script string) func(target) string { return func(target) string { return script } }

// checks are all checks, in table order.
var checks = []check{
	{"limits_huge_pages", true, func(t target) string {
		if t.hugePages != "" {
			return fmt.Sprintf("unsupported(%q)", t.hugePages)
		}
		return `my $size = 6 << 20; my $n = "probe"; my $fd = syscall($memfd_create, $n, 4); $fd >= 0 or refused; open(my $f, "+<&=", $fd) or refused;
truncate($f, $size) or refused; my $at = syscall($mmap, 0, $size, 3, 1, $fd, 0); $at != -1 or refused;
for my $page (0 .. 2) { unpack("P1", pack("J", $at + ($page << 21))) } yes`
	}},
	{"limits_memory", true, fixed(`my $x = "a" x (200 << 20); yes`)},
	{"limits_processes", true, fixed(`my @p; for (1 .. 100) { my $p = fork; if (!defined $p) { my $why = $!; kill 9, @p; waitpid $_, 0 for @p; refused($why) }
if (!$p) { sleep 100; exit } push @p, $p } kill 9, @p; waitpid $_, 0 for @p; yes`)},
	{"limits_cpus", false, func(t target) string {
		if t.otherCPU < 0 {
			return `unsupported("the machine has one CPU")`
		}
		return fmt.Sprintf(`my $cpus = "\0" x 128; vec($cpus, %d, 1) = 1; syscall($setaffinity, 0, length $cpus, $cpus) == 0 ? yes : refused`, t.otherCPU)
	}},
	{"limits_nodes", false, func(t target) string {
		if t.otherNode < 0 {
			return `unsupported("the machine has no memory on another NUMA node")`
		}
		// It asks for memory of that node (MPOL_BIND), which a filter may refuse. If the
		// node is allowed, as a list such as "0-2,5" (proc_pid_status(5)), the kernel may use
		// it later; otherwise it must have none of the memory of 16 MiB (numa_maps(5)).
		return fmt.Sprintf(`my $other = %d; my $nodes = "\0" x 128; vec($nodes, $other, 1) = 1; syscall($set_mempolicy, 2, $nodes, 1024); my $x = "\1" x (16 << 20);
open my $f, "<", "/proc/self/status" or refused; my ($allowed) = map { /^Mems_allowed_list:\s*(\S+)/ ? $1 : () } <$f>;
for (split ",", $allowed) { my ($first, $last) = split "-"; yes if $first <= $other && ($last // $first) >= $other }
open my $maps, "<", "/proc/self/numa_maps" or unsupported("the kernel does not say where memory is: $!"); my %%pages;
while (<$maps>) { next if / file=/ || !/ anon=/; $pages{$1} += $2 while / N(\d+)=(\d+)/g }
yes if $pages{$other}; refused("memory is of nodes $allowed: " . join ", ", map { "$pages{$_} pages of node $_" } sort keys %%pages)`, t.otherNode)
	}},
	{"limits_devices", false, fixed(`for (qw(/dev/mem /dev/kmsg /dev/kvm /dev/net/tun)) { open(my $f, "<", $_) and yes } refused`)},
	{"hides_cpus", true, func(t target) string {
		if t.otherCPU < 0 {
			return `unsupported("the machine has one CPU")`
		}
		return `open my $f, "<", "/proc/cpuinfo" or refused; my $n = grep { /^processor/ } <$f>; my @d = glob "/sys/devices/system/cpu/cpu[0-9]*";
$n > 1 || @d > 1 ? yes : refused("$n in /proc/cpuinfo, " . @d . " in /sys")`
	}},
	{"hides_devices", false, func(target) string {
		return `-d "/sys/bus/pci/devices" || -d "/sys/bus/pci" or unsupported("the machine has no PCI bus");
my @e = (glob("/sys/bus/pci/devices/*"), glob("/sys/devices/pci*/*")); @e ? yes : refused("none is seen")`
	}},
	{"hides_processes", false, func(t target) string {
		return `for (glob "/proc/[0-9]*/cmdline") { open my $f, "<", $_ or next; local $/; yes if (<$f> // "") =~ /` + neighbourWord + `/ } refused("none is seen")`
	}},
	{"hides_memory", false, func(t target) string { return readSecret(t, t.memory, "") }},
	{"hides_huge_pages", false, func(t target) string { return readSecret(t, t.huge, t.hugePages) }},
	{"hides_sockets", false, func(t target) string {
		return fmt.Sprintf(`socket my $s, AF_UNIX, SOCK_STREAM, 0 or refused; connect($s, pack_sockaddr_un("\0%s")) ? yes : refused`, t.address)
	}},
	{"hides_host", false, func(t target) string {
		// An image has its own files by these names.
		return fmt.Sprintf(`my $why = "the files are its own"; sub host { my ($path, $id) = @_; my @s = stat $path; @s && "$s[0]:$s[1]" eq $id }
open(my $f, "<", "/etc/shadow") ? host("/etc/shadow", "%s") && yes : ($why = $!); host("/root", "%s") && (() = glob "/root/.[a-z]* /root/*") and yes;
my ($k, $b); open($k, "<", "/proc/kcore") and read($k, $b, 4) and yes; refused($why)`, t.shadow, t.home)
	}},
	{"maps_users", false, fixed(`open my $f, "<", "/proc/self/uid_map" or refused; my ($in, $out) = split " ", <$f>; $> == $in && $out == 0 ? yes : refused("uid $> is $out of the host")`)},
	{"drops_capabilities", false, fixed(`open my $f, "<", "/proc/self/status" or refused; my $n = grep { /^Cap(Inh|Prm|Eff|Bnd|Amb):\s*0*[1-9a-f]/ } <$f>; $n ? yes : refused("all sets are empty")`)},
	{"filters_syscalls", false, fixed(`local $/; open my $f, "<", "/proc/self/status" or refused; <$f> =~ /^Seccomp:\s*2$/m ? refused("mode 2") : yes`)},
	{"gains_nothing", false, fixed(`local $/; open my $f, "<", "/proc/self/status" or refused; <$f> =~ /^NoNewPrivs:\s*1$/m ? refused("no_new_privs") : yes`)},
}

// readSecret reads the neighbour's memory file through its process.
func readSecret(t target, fd int, reason string) string {
	if fd < 0 {
		return fmt.Sprintf("unsupported(%q)", reason)
	}
	// A file on huge pages is mapped, since read and write do not work everywhere.
	return fmt.Sprintf(`open(my $f, "<", "/proc/%d/fd/%d") or refused; my $at = syscall($mmap, 0, 2 << 20, 1, 1, fileno($f), 0); $at != -1 or refused;
unpack("P%d", pack("J", $at)) eq "%s" ? yes : refused("other memory")`, t.pid, fd, len(t.secret), t.secret)
}

// neighbourWord is in the neighbour's command line, and in no check's.
const neighbourWord = `dray[-]neighbour[-]of[-]checks`

// neighbour holds a secret in memory files, and prints where.
const neighbour = `# dray-neighbour-of-checks
$| = 1; my $secret = join "-", qw(held by the neighbour);
sub hold { my $fd = syscall($memfd_create, my $n = "secret", shift); return -1 if $fd < 0; $^F = 100; open(my $f, "+<&=", $fd) or return -1;
truncate($f, 2 << 20) or return -1; my $at = syscall($mmap, 0, 2 << 20, 3, 1, $fd, 0); return -1 if $at == -1;
open(my $m, "+<", "/proc/self/mem") or return -1; sysseek($m, $at, 0); syswrite($m, $secret) == length $secret or return -1; push @main::keep, $f; $fd }
printf "memory %d huge %d\n", hold(0), HUGE ? hold(4) : -1; sleep 1000`
