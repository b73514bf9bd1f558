// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// TestArchive reads the archive back with cpio(1).
func TestArchive(t *testing.T) {
	testenv.Program(t, "cpio")
	var buf bytes.Buffer
	w := newArchive(&buf)
	for name, text := range map[string]string{"init": "abcde", "/a/b/c": "", "a/b/d": "1234"} {
		if err := w.file(name, 0o755, int64(len(text)), strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command("cpio", "--extract", "--quiet", "--no-preserve-owner")
	cmd.Dir, cmd.Stdin = dir, &buf
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("cpio: %v: %s", err, out)
	}
	out, err := exec.Command("sh", "-c", `cd "$1" && cat init a/b/c a/b/d && stat -c %a init a`, "sh", dir).Output()
	if err != nil || string(out) != "abcde1234755\n755\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestStopTick: the first virtual CPU keeps its tick, so there are at least two.
func TestStopTick(t *testing.T) {
	for _, test := range []struct {
		c     Config
		vcpus int
		cpus  string
	}{
		{Config{CPUs: []int{3}}, 2, "1-1"},
		{Config{CPUs: []int{0, 2, 4}}, 3, "1-2"},
		{Config{CPUs: []int{3}, VCPUs: 5}, 5, "1-4"},
	} {
		test.c.StopTick()
		if want := []string{"nohz_full=" + test.cpus, "rcu_nocbs=" + test.cpus}; test.c.vcpus() != test.vcpus || !slices.Equal(test.c.CmdLine, want) {
			t.Errorf("%d virtual CPUs, %v, want %d, %v", test.c.vcpus(), test.c.CmdLine, test.vcpus, want)
		}
	}
}

// TestNodes: nodes divide memory and CPUs equally, each with a socket of its own.
func TestNodes(t *testing.T) {
	one := strings.Join(Config{VCPUs: 3}.memory(TCG, 1<<30), " ")
	if want := "-machine q35,accel=tcg,memory-backend=ram -object memory-backend-memfd,id=ram,share=on,size=1073741824 -smp 3 -m 1073741824B"; one != want {
		t.Errorf("one node: %s, want %s", one, want)
	}
	two := strings.Join(Config{VCPUs: 3, Nodes: 2, HugePages: true}.memory(KVM, 1<<30), " ")
	for _, want := range []string{
		"-machine q35,accel=kvm -smp 4,sockets=2 -m 1073741824B ",
		"-object memory-backend-memfd,id=ram0,share=on,size=536870912,hugetlb=on,hugetlbsize=2M -numa node,nodeid=0,memdev=ram0 -numa cpu,node-id=0,socket-id=0",
		"id=ram1,", "-numa node,nodeid=1,memdev=ram1 -numa cpu,node-id=1,socket-id=1",
	} {
		if !strings.Contains(two, want) {
			t.Errorf("two nodes: %s, want %s", two, want)
		}
	}
}

func TestArchiveOfShortContent(t *testing.T) {
	if err := newArchive(&bytes.Buffer{}).file("x", 0o644, 9, strings.NewReader("four")); err == nil {
		t.Error("a file that is shorter than announced was taken")
	}
}

const someModules = `kernel/net/9p/9pnet.ko:
kernel/net/9p/9pnet_virtio.ko: kernel/net/9p/9pnet.ko kernel/drivers/virtio/virtio.ko kernel/drivers/virtio/virtio_ring.ko
kernel/fs/9p/9p.ko: kernel/net/9p/9pnet.ko kernel/fs/fscache/fscache.ko kernel/fs/netfs/netfs.ko
kernel/drivers/char/hw_random/virtio-rng.ko: kernel/drivers/virtio/virtio.ko kernel/drivers/virtio/virtio_ring.ko
`

func TestModuleOrder(t *testing.T) {
	m, err := parseModules(strings.NewReader(someModules))
	if err != nil {
		t.Fatal(err)
	}
	list, err := m.order([]string{"9p", "9pnet_virtio", "virtio_rng", "virtio_pci"}, parseBuiltin("kernel/drivers/virtio/virtio_pci.ko\n"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range list {
		names = append(names, moduleName(f))
	}
	want := []string{"netfs", "fscache", "9pnet", "9p", "virtio_ring", "virtio", "9pnet_virtio", "virtio_rng"}
	if !slices.Equal(names, want) {
		t.Errorf("order %v, want %v", names, want)
	}
	if _, err := m.order([]string{"nosuch"}, nil); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("a module that does not exist: %v", err)
	}
	if _, err := parseModules(strings.NewReader("nonsense\n")); err == nil {
		t.Error("a line without a colon was accepted")
	}
}

func FuzzModules(f *testing.F) {
	f.Add(someModules)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseModules(strings.NewReader(text))
		if err != nil {
			return
		}
		for name := range m.files {
			if list, err := m.order([]string{name}, nil); err != nil || len(list) == 0 {
				t.Fatalf("%q: %v, %v", name, list, err)
			}
		}
	})
}

// TestKernelOfTheCache finds an unpacked kernel without network or package tools.
func TestKernelOfTheCache(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(cacheVariable, cache)
	t.Setenv("PATH", "/nowhere")
	for _, dir := range []string{"generic/boot", "generic/lib/modules/6.1.0-9-amd64"} {
		if err := os.MkdirAll(filepath.Join(cache, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"generic/boot/vmlinuz-6.1.0-9-amd64", "generic/lib/modules/6.1.0-9-amd64/modules.dep"} {
		if err := os.WriteFile(filepath.Join(cache, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []Flavour{"", Generic, LowLatency} {
		k, err := FindKernel(context.Background(), f)
		if err != nil || k.Version != "6.1.0-9-amd64" || filepath.Dir(filepath.Dir(k.Image)) != filepath.Join(cache, "generic") {
			t.Errorf("flavour %q: %+v, %v", f, k, err)
		}
	}
	if _, err := FindKernel(context.Background(), "best"); err == nil || !strings.Contains(err.Error(), "generic, lowlatency or rt") {
		t.Errorf("an unknown flavour: %v", err)
	}
	if _, err := FindKernel(context.Background(), Realtime); !errors.Is(err, host.ErrUnsupported) {
		t.Errorf("without apt: %v", err)
	}
	if _, err := os.Stat(filepath.Join(cache, "generic/boot")); err != nil {
		t.Errorf("a failed fetch removed another kernel: %v", err)
	}
}

// TestPlacesOnTheBus: an application's device has a slot, and excess virtual CPUs
// share the CPUs.
func TestPlacesOnTheBus(t *testing.T) {
	n := NIC{Socket: "/s", MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, MTU: 1500}
	if got := strings.Join(n.args(TCG, 0, 0, "/s"), " "); strings.Contains(got, "addr=") {
		t.Errorf("without one: %s", got)
	}
	n.Slot = 0x1e
	if got := strings.Join(n.args(TCG, 0, 0, "/s"), " "); !strings.Contains(got, ",addr=0x1e") {
		t.Errorf("with one: %s", got)
	}
	for want, c := range map[int]Config{3: {VCPUs: 3, CPUs: []int{1}}, 2: {CPUs: []int{4, 5}}} {
		if got := c.vcpus(); got != want {
			t.Errorf("%+v: %d virtual CPUs", c, got)
		}
	}
}

// TestAKernelIsMissing only if a program is, or if apt does not find it.
func TestAKernelIsMissing(t *testing.T) {
	refused := exec.Command("false").Run()
	for err, missing := range map[error]bool{
		&host.Unsupported{What: "apt-get"}: true, errNoKernel: true, refused: true, unix.EMFILE: false, context.DeadlineExceeded: false,
	} {
		if got := notFetched("linux-image-amd64", err); errors.Is(got, host.ErrUnsupported) != missing || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
}
