// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"fmt"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/function/guest/inside"
	"github.com/drayage/dray/internal/host"
)

// Emulator is the program that runs guests.
const Emulator = "qemu-system-x86_64"

// Accel says what executes a guest's instructions.
type Accel string

// The accelerators.
const (
	KVM Accel = "kvm" // the CPU
	TCG Accel = "tcg" // a translator: everything measured there is emulated
)

// DefaultMemory is a guest's memory unless it is told otherwise, in bytes.
const DefaultMemory = 512 << 20

// Config is a guest as it is to be booted.
type Config struct {
	Name   string // its host name, and what its process is called
	Dir    string // an existing directory of the guest's own, for sockets and logs
	Kernel Flavour
	VCPUs  int   // 0: as many as CPUs, or else as this machine has
	CPUs   []int // the host's CPUs to which the virtual ones are pinned, in turn; nil: any
	Memory uint64
	// HugePages takes the guest's memory from the host's pages of 2 MiB.
	HugePages bool
	// User is whom of the host QEMU runs as; the guest sees what that user may
	// read, less Hidden, directories that are empty there, but for Shown. 0: root,
	// and everything. Such a guest must be Detached.
	User          int
	Hidden, Shown []string
	Shares        []Share
	NICs          []NIC
	CmdLine       []string // further words of the kernel's command line
	// Place is where QEMU runs. Detached says that it outlives this process, and
	// that whoever removes the place's control group ends it; otherwise it ends
	// with this process, however that ends, and Place must be the zero Place.
	Place    host.Place
	Detached bool
}

// NIC is a network interface of the guest.
type NIC struct {
	// Tap is the name of the tap that is made for it in Place's network namespace, or
	// with Macvtap of a macvtap that is there, whose MAC address is this one's.
	Tap     string
	Macvtap bool
	// Socket is what QEMU makes instead if it is not empty: a switch connects to
	// it that maps the guest's memory (vhost-user). Path on the host, in a directory
	// of the port's own that belongs to User.
	Socket string
	MAC    net.HardwareAddr
	MTU    int
	// Slot is its place on the machine's bus, 0 for whichever is free.
	Slot int
}

// Names of the files in a guest's directory.
const (
	fileConsole   = "console.log"
	fileQEMULog   = "qemu.log"
	fileQMP       = "qmp"
	fileInitramfs = "initramfs"
	fileInfo      = "guest.json"
)

func channelFile(i int) string { return "agent." + strconv.Itoa(i) }

func shareTag(i int) string { return "share" + strconv.Itoa(i) }

// commandLine is the kernel's. The last words spare self-tests and probes that an
// emulator takes seconds for, and change nothing of what is measured.
var commandLine = []string{"console=ttyS0", "quiet", "panic=-1", "net.ifnames=0", "cryptomgr.notests", "no_timer_check", "audit=0", "i8042.noaux", "i8042.nokbd", "8250.nr_uarts=1"}

// vcpus is how many CPUs the guest has.
func (c Config) vcpus() int {
	switch {
	case c.VCPUs > 0:
		return c.VCPUs
	case len(c.CPUs) > 0:
		return len(c.CPUs)
	}
	return runtime.NumCPU()
}

// StopTick has the guest's kernel stop its tick on every virtual CPU but the first
// while one thread alone runs there. The first keeps the time for all: the guest gets
// a second one where it had none.
func (c *Config) StopTick() {
	c.VCPUs = max(2, c.vcpus())
	others := fmt.Sprintf("1-%d", c.VCPUs-1)
	c.CmdLine = append(c.CmdLine, "nohz_full="+others, "rcu_nocbs="+others)
}

// quote protects a value among QEMU's comma-separated options.
func quote(value string) string { return strings.ReplaceAll(value, ",", ",,") }

// args is QEMU's command line.
func (c Config) args(k Kernel, accel Accel, h *handles) []string {
	memory := c.Memory
	if memory == 0 {
		memory = DefaultMemory
	}
	model := "max"
	if accel == KVM {
		model = "host"
	}
	ram := "memory-backend-memfd,id=ram,share=on,size=" + strconv.FormatUint(memory, 10)
	if c.HugePages {
		ram += ",hugetlb=on,hugetlbsize=2M"
	}
	paths := c.seen(k)
	list := []string{
		"-name", quote(c.Name), "-machine", "q35,memory-backend=ram,accel=" + string(accel), "-object", ram,
		"-cpu", model, "-smp", strconv.Itoa(c.vcpus()), "-m", strconv.FormatUint(memory, 10) + "B",
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny",
		// A pipe cannot be cut off, as without append.
		"-add-fd", fmt.Sprintf("fd=%d,set=0", h.console), "-chardev", "file,id=console,path=/dev/fdset/0,append=on", "-serial", "chardev:console",
		"-chardev", fmt.Sprintf("socket,id=qmp,fd=%d,server=on,wait=off", h.qmp), "-mon", "chardev=qmp,mode=control",
		"-kernel", paths.image, "-initrd", paths.initramfs,
		"-append", strings.Join(append(slices.Clone(commandLine), c.CmdLine...), " "),
		"-device", "virtio-rng-pci",
		"-device", fmt.Sprintf("virtio-serial-pci,max_ports=%d", Channels+1),
	}
	for i := range Channels {
		list = append(list,
			"-chardev", fmt.Sprintf("socket,id=c%d,fd=%d,server=on,wait=off", i, h.channels[i]),
			"-device", fmt.Sprintf("virtserialport,chardev=c%d,name=%s%d", i, inside.PortPrefix, i))
	}
	list = append(list, ninep(tagRoot, paths.root, true)...)
	list = append(list, ninep(tagModules, paths.modules, true)...)
	for i, s := range c.Shares {
		list = append(list, ninep(shareTag(i), paths.shares[i], s.ReadOnly)...)
	}
	for i, n := range c.NICs {
		list = append(list, n.args(accel, i, h.taps[i], paths.sockets[i])...)
	}
	return list
}

// args are those of NIC i, which has a tap that QEMU is handed, or a socket.
func (n NIC) args(accel Accel, i, tap int, socket string) []string {
	device := fmt.Sprintf("virtio-net-pci,netdev=n%d,mac=%s,host_mtu=%d", i, n.MAC, n.MTU)
	if n.Slot > 0 {
		device += fmt.Sprintf(",addr=%#x", n.Slot)
	}
	if n.Socket == "" {
		return []string{"-netdev", fmt.Sprintf("tap,id=n%d,fd=%d", i, tap), "-device", device}
	}
	if accel == TCG {
		// QEMU 7.2 crashes when an emulated guest unmasks an MSI-X vector of a
		// vhost-user device: it takes it for one of KVM's.
		device += ",vectors=0"
	}
	return []string{
		"-chardev", fmt.Sprintf("socket,id=v%d,path=%s,server=on", i, quote(socket)),
		"-netdev", fmt.Sprintf("vhost-user,id=n%d,chardev=v%d", i, i), "-device", device,
	}
}

// ninep shares a directory of the host.
func ninep(tag, path string, readOnly bool) []string {
	fs := "local,id=" + tag + ",path=" + quote(path) + ",security_model=none,multidevs=remap"
	if readOnly {
		fs += ",readonly=on"
	}
	return []string{"-fsdev", fs, "-device", "virtio-9p-pci,fsdev=" + tag + ",mount_tag=" + tag}
}
