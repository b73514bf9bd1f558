// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// limitTests show each limit by the behaviour with and without it.
var limitTests = []namedTest{
	{"cpus", testCPUs},
	{"memory", testMemory},
	{"pids", testPids},
	{"default pids", testDefaultPids},
	{"hugepages", testHugePages},
}

func testCPUs(t *testing.T, c Config) {
	fn := c.function(t)
	f := Up(t, c.Runtime, fn)
	if out, _ := f.Output("nproc"); strings.TrimSpace(out) != strconv.Itoa(goruntime.NumCPU()) {
		t.Errorf("without a limit the function sees %s CPUs", out)
	}
	last := goruntime.NumCPU() - 1
	fn.CPUs.Set = []int{last}
	f = Up(t, c.Runtime, fn)
	const script = "nproc; grep Cpus_allowed_list /proc/self/status"
	want := "1\nCpus_allowed_list:\t" + strconv.Itoa(last) + "\n"
	if c.Machine {
		want = "1\nCpus_allowed_list:\t0\n"
	}
	if out, _ := f.Output("sh", "-c", script); out != want {
		t.Errorf("with CPU %d: %s", last, out)
	}
	if out, _ := f.Exec("", "sh", "-c", script); out != want {
		t.Errorf("exec with CPU %d: %s", last, out)
	}
}

// hog allocates 200 MiB, and never more: a virtual machine has 512 in total.
const hog = `$x = ""; vec($x, (200 << 20) - 1, 8) = 1; print "allocated\n"`

func testMemory(t *testing.T, c Config) {
	fn := c.function(t)
	f := Up(t, c.Runtime, fn)
	if out, code := f.Output("perl", "-e", hog); code != 0 {
		t.Errorf("without a limit: status %d, %s", code, out)
	}
	fn.Memory = 64 << 20
	f = Up(t, c.Runtime, fn)
	if out, code := f.Output("perl", "-e", hog); code != 137 {
		t.Errorf("with a limit of 64 MiB, 200 MiB were allocated: status %d, %s", code, out)
	}
	if out, code := f.Output("echo", "again"); code != 0 {
		t.Errorf("after the kill the function does not start again: status %d, %s", code, out)
	}
}

// forks starts 200 processes, and exits with 3 if it cannot.
const forks = `for (1 .. 200) { my $p = fork; if (!defined $p) { print "refused\n"; exit 3 } if (!$p) { sleep 1000; exit } } print "all\n"`

func testPids(t *testing.T, c Config) {
	fn := c.function(t)
	fn.Pids = 300
	f := Up(t, c.Runtime, fn)
	if out, code := f.Output("perl", "-e", forks); code != 0 || out != "all\n" {
		t.Errorf("with 300 processes: status %d, %s", code, out)
	}
	noProcesses(t, f)
	fn.Pids = 50
	f = Up(t, c.Runtime, fn)
	if out, code := f.Output("perl", "-e", forks); code != 3 || !strings.HasPrefix(out, "refused\n") {
		t.Errorf("with 50 processes: status %d, %s", code, out)
	}
	noProcesses(t, f)
}

// testHugePages shows that a hugepages limit applies or is refused. The limit is
// read back: this machine may have no page to try.
func testHugePages(t *testing.T, c Config) {
	fn := c.function(t)
	fn.HugePages = []chain.HugePages{{Size: 2 << 20, Limit: 4 << 20}}
	f := New(t, c.Runtime, fn)
	if err := f.Up(nil); errors.Is(err, host.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	r, err := f.TryStart("sleep", "1000")
	if errors.Is(err, host.ErrUnsupported) {
		if _, err := f.TryStart("true"); !errors.Is(err, host.ErrUnsupported) {
			t.Errorf("a command that ends at once started without its limit: %v", err)
		}
		noProcesses(t, f)
		t.Skip(err)
	}
	testenv.Must(t, err)
	found := false
	in, err := host.CgroupOf(r.ID().PID)
	testenv.Must(t, err)
	for _, dir := range in.Foreign {
		for _, name := range []string{"hugetlb.2MB.max", "hugetlb.2MB.limit_in_bytes"} {
			limit, err := os.ReadFile(filepath.Join(dir, "..", name))
			found = found || err == nil && strings.TrimSpace(string(limit)) == "4194304"
		}
	}
	if !found {
		t.Errorf("no limit of 4 MiB above %v", in.Foreign)
	}
}

func testDefaultPids(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	script := strings.Replace(forks, "200", "1000", 1)
	if out, code := f.Output("perl", "-e", script); code != 3 {
		t.Errorf("a thousand processes without a limit of its own: status %d, %s", code, out)
	}
	noProcesses(t, f)
}

// mapPages maps three huge pages of 2 MiB and touches each: it calls mmap(2) and
// memfd_create(2) by number, as perl has no names for them.
const mapPages = perlPrologue + `my %nr = (x86_64 => [319, 9], aarch64 => [279, 222]); use POSIX (); my $arch = (POSIX::uname())[4];
	my ($create, $mmap) = @{ $nr{$arch} // [] } or print("unsupported: $arch\n"), exit; my $size = 6 << 20;
	my $fd = syscall($create, my $name = "probe", 4); $fd >= 0 or refused;
	open(my $f, "+<&=", $fd) or refused; truncate($f, $size) or refused;
	my $at = syscall($mmap, 0, $size, 3, 1, $fd, 0); $at != -1 or refused;
	for my $page (0 .. 2) { unpack("P1", pack("J", $at + ($page << 21))) } yes`

// testHugePageProbe shows that a function gets no more huge pages than its limit,
// and that a neighbour keeps its own.
func testHugePageProbe(t *testing.T, c Config) {
	testenv.HugePages(t, 8)
	fn := c.function(t)
	fn.HugePages = []chain.HugePages{{Size: 2 << 20, Limit: 8 << 20}}
	enough := New(t, c.Runtime, fn)
	fn.HugePages = []chain.HugePages{{Size: 2 << 20, Limit: 4 << 20}}
	less := New(t, c.Runtime, fn)
	for _, f := range []*Function{enough, less} {
		if err := f.Up(nil); errors.Is(err, host.ErrUnsupported) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	r, err := enough.TryStart("perl", "-e", mapPages)
	if errors.Is(err, host.ErrUnsupported) {
		t.Skip(err)
	}
	testenv.Must(t, err)
	code := r.Status()
	out := r.Out.String()
	if strings.HasPrefix(out, "unsupported") {
		t.Skip(out)
	}
	if code != 0 || out != "yes\n" {
		t.Fatalf("within the limit the probe does not succeed, so it proves nothing: status %d, %s%s", code, out, r.Err)
	}
	// The kernel refuses the mapping, or kills the process at the third page.
	if out, code := less.Output("perl", "-e", mapPages); out == "yes\n" {
		t.Errorf("with a limit of 4 MiB of huge pages, 6 MiB were allocated: status %d, %s", code, out)
	}
	if out, code := enough.Output("perl", "-e", mapPages); out != "yes\n" {
		t.Errorf("after a neighbour was refused pages, allocation within the limit fails: status %d, %s", code, out)
	}
}
