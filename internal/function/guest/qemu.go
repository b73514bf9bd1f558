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

// Accel is what executes a guest's instructions.
type Accel string

// The accelerators.
const (
	KVM Accel = "kvm" // the CPU
	TCG Accel = "tcg" // a translator: all measurements there are emulated
)

// DefaultMemory is a guest's memory unless configured, in bytes.
const DefaultMemory = 512 << 20

// Config describes a guest to boot.
type Config struct {
	Name   string // its host name and process name
	Dir    string // the guest's own existing directory, for sockets and logs
	Kernel Flavour
	VCPUs  int   // 0: as many as CPUs, or as this machine has
	CPUs   []int // host CPUs for the virtual CPUs, in turn; nil: any
	Memory uint64
	// Nodes is how many NUMA nodes share its memory and virtual CPUs equally; 0: one.
	Nodes int
	// HugePages backs the guest's memory with the host's 2 MiB pages.
	HugePages bool
	// User is the host user that QEMU runs as. The guest sees what that user may
	// read, except Hidden directories, which are empty apart from Shown. 0: root, and
	// everything. A guest with a User must be Detached.
	User          int
	Hidden, Shown []string
	Shares        []Share
	NICs          []NIC
	Windows       int      // up to 8: empty slots for Plug
	CmdLine       []string // more kernel command line words
	// Place is where QEMU runs. Detached: QEMU outlives this process, and ends when
	// the place's control group is removed. Otherwise it always ends with this
	// process, and Place must be the zero Place.
	Place    host.Place
	Detached bool
}

// NIC is a network interface of the guest.
type NIC struct {
	// Tap is the name of the tap to make in Place's network namespace. With Macvtap
	// it is an existing macvtap, whose MAC address this NIC has.
	Tap     string
	Macvtap bool
	// Socket is what QEMU makes instead if it is not empty: a switch that maps the
	// guest's memory connects to it (vhost-user). Host path, in the port's own
	// directory, which belongs to User.
	Socket string
	MAC    net.HardwareAddr
	MTU    int
	// Slot is its slot on the machine's bus, 0 for any free one.
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

// commandLine is the kernel's. The last words skip self-tests and probes that
// take seconds in an emulator, and do not affect measurements.
var commandLine = []string{"console=ttyS0", "quiet", "panic=-1", "net.ifnames=0", "cryptomgr.notests", "no_timer_check", "audit=0", "i8042.noaux", "i8042.nokbd", "8250.nr_uarts=1"}

// vcpus is the guest's number of CPUs, of which each node has as many.
func (c Config) vcpus() int {
	cpus := runtime.NumCPU()
	switch {
	case c.VCPUs > 0:
		cpus = c.VCPUs
	case len(c.CPUs) > 0:
		cpus = len(c.CPUs)
	}
	nodes := max(1, c.Nodes)
	return (cpus + nodes - 1) / nodes * nodes
}

// StopTick stops the guest kernel's tick on every virtual CPU but the first while a
// single thread runs there. The first does timekeeping for all, so a guest with one
// CPU gets a second.
func (c *Config) StopTick() {
	c.VCPUs = max(2, c.vcpus())
	others := fmt.Sprintf("1-%d", c.VCPUs-1)
	c.CmdLine = append(c.CmdLine, "nohz_full="+others, "rcu_nocbs="+others)
}

// quote escapes a value in QEMU's comma-separated options.
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
	paths := c.seen(k)
	list := append([]string{"-name", quote(c.Name), "-cpu", model}, c.memory(accel, memory)...)
	list = append(list,
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny",
		// A pipe cannot be truncated, as without append.
		"-add-fd", fmt.Sprintf("fd=%d,set=0", h.console), "-chardev", "file,id=console,path=/dev/fdset/0,append=on", "-serial", "chardev:console",
		"-chardev", fmt.Sprintf("socket,id=qmp,fd=%d,server=on,wait=off", h.qmp), "-mon", "chardev=qmp,mode=control",
		"-kernel", paths.image, "-initrd", paths.initramfs,
		"-append", strings.Join(slices.Concat(commandLine, c.Kernel.words(), c.CmdLine), " "),
		"-device", "virtio-rng-pci",
		"-device", fmt.Sprintf("virtio-serial-pci,max_ports=%d", Channels+1))
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
	list = append(list, windowArgs(c.Windows)...)
	for i, n := range c.NICs {
		list = append(list, n.args(accel, i, h.taps[i], paths.sockets[i])...)
	}
	return list
}

// memory are the options of the machine, its CPUs and its memory. Each node has a
// socket of its own, as real ones have.
func (c Config) memory(accel Accel, size uint64) []string {
	backend := func(id string, size uint64) string {
		ram := fmt.Sprintf("memory-backend-memfd,id=%s,share=on,size=%d", id, size)
		if c.HugePages {
			ram += ",hugetlb=on,hugetlbsize=2M"
		}
		return ram
	}
	cpus, machine := strconv.Itoa(c.vcpus()), "q35,accel="+string(accel)
	if c.Nodes < 2 {
		return []string{"-machine", machine + ",memory-backend=ram", "-object", backend("ram", size), "-smp", cpus, "-m", fmt.Sprintf("%dB", size)}
	}
	list := []string{"-machine", machine, "-smp", fmt.Sprintf("%s,sockets=%d", cpus, c.Nodes), "-m", fmt.Sprintf("%dB", size)}
	for i := range c.Nodes {
		id := fmt.Sprintf("ram%d", i)
		list = append(list, "-object", backend(id, size/uint64(c.Nodes)),
			"-numa", fmt.Sprintf("node,nodeid=%d,memdev=%s", i, id), "-numa", fmt.Sprintf("cpu,node-id=%d,socket-id=%d", i, i))
	}
	return list
}

// args are the options of NIC i, which has a tap that QEMU inherits, or a socket.
func (n NIC) args(accel Accel, i, tap int, socket string) []string {
	device := fmt.Sprintf("virtio-net-pci,netdev=n%d,mac=%s,host_mtu=%d", i, n.MAC, n.MTU)
	if n.Slot > 0 {
		device += fmt.Sprintf(",addr=%#x", n.Slot)
	}
	if n.Socket == "" {
		return []string{"-netdev", fmt.Sprintf("tap,id=n%d,fd=%d", i, tap), "-device", device}
	}
	if accel == TCG {
		// QEMU 7.2 crashes if an emulated guest unmasks an MSI-X vector of a vhost-user
		// device: it treats the vector as one of KVM's.
		device += ",vectors=0"
	}
	return []string{
		"-chardev", fmt.Sprintf("socket,id=v%d,path=%s,server=on", i, quote(socket)),
		"-netdev", fmt.Sprintf("vhost-user,id=n%d,chardev=v%d", i, i), "-device", device,
	}
}

// ninep shares a host directory.
func ninep(tag, path string, readOnly bool) []string {
	fs := "local,id=" + tag + ",path=" + quote(path) + ",security_model=none,multidevs=remap"
	if readOnly {
		fs += ",readonly=on"
	}
	return []string{"-fsdev", fs, "-device", "virtio-9p-pci,fsdev=" + tag + ",mount_tag=" + tag}
}
