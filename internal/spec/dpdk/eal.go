// SPDX-License-Identifier: Apache-2.0

package dpdk

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/sockpath"
	"github.com/drayage/dray/internal/spec/units"
)

// Variable names the environment variable that holds EAL's arguments; Argument is the
// argument they replace.
const (
	Variable = "DRAY_EAL"
	Argument = "$(" + Variable + ")"
)

// RuntimeVariable names the directory in which EAL makes its own. Every DPDK
// application of a function gets it; otherwise EAL would use the host's.
const RuntimeVariable = "RUNTIME_DIRECTORY"

// defaultMemory is EAL's memory, in bytes, for a function without a limit. The system
// provides only the pages that are touched.
const defaultMemory = 1 << 30

// Application is a DPDK application of a function, with its resources.
type Application struct {
	Memory    units.Bytes       // of the function; 0: no limit
	HugePages []chain.HugePages // of the function; empty: plain pages
	CPUs      []int             // ascending; never empty
	Pinned    bool              // each of its threads is pinned to one of CPUs
	Lcores    int               // at least so many threads if they are not pinned
	Nodes     int               // NUMA nodes of the host, at least 1
	Vdevs     []Vdev            // in the order of the function's ports
	// Inside says that the application runs as in a container. It sees the directories
	// at LinksInside, the driver's folder at LibInside, and its native ports' sockets
	// where libdray looks. Otherwise it sees the host's paths.
	Inside bool
	Driver string // file of net_dray on the host; needed if a Vdev names it
	Ports  string // host directory of the sockets that net_dray opens
}

// Device is the application's name for a port: "net_dray0", or its bus address.
type Device struct{ Port, Name string }

// Devices lists the ports in the order of a.Vdevs. Each driver counts its own.
func (a Application) Devices() []Device {
	list, count := make([]Device, 0, len(a.Vdevs)), map[string]int{}
	for _, v := range a.Vdevs {
		if v.PCI != "" {
			list = append(list, Device{Port: v.Port, Name: v.PCI})
			continue
		}
		list = append(list, Device{Port: v.Port, Name: v.Driver + strconv.Itoa(count[v.Driver])})
		count[v.Driver]++
	}
	return list
}

// EAL returns EAL's arguments, without the program's name. The error names the
// function's property that prevents it.
func (a Application) EAL() ([]string, error) {
	args, err := a.memory()
	if err != nil {
		return nil, err
	}
	shared, err := a.shared()
	if err != nil {
		return nil, err
	}
	args = append(args, shared...)
	args = append(append(args, a.bus()...), "--no-telemetry", "--lcores", a.lcores())
	if a.NeedsDriver() {
		if a.Driver == "" {
			return nil, fmt.Errorf("the driver %s is needed, but its file is unknown", DriverFile)
		}
		driver := a.Driver
		if a.Inside {
			driver = filepath.Join(LibInside, filepath.Base(driver))
		}
		args = append(args, "-d", driver)
	}
	for i, d := range a.Devices() {
		if a.Vdevs[i].PCI != "" {
			args = append(args, "-a", d.Name)
			continue
		}
		vdev, err := a.vdev(d.Name, a.Vdevs[i])
		if err != nil {
			return nil, err
		}
		args = append(args, "--vdev", vdev)
	}
	return args, nil
}

// bus enables the PCI bus only if devices are on it, as in a VM. Such devices need
// physical addresses, which only root can read, here the VM's root. Other devices get
// none.
func (a Application) bus() []string {
	if slices.ContainsFunc(a.Vdevs, func(v Vdev) bool { return v.PCI != "" }) {
		return []string{"--iova-mode=pa"}
	}
	return []string{"--iova-mode=va", "--no-pci"}
}

// Uses reports whether any port of the application has the driver.
func (a Application) Uses(driver string) bool {
	return slices.ContainsFunc(a.Vdevs, func(v Vdev) bool { return v.Driver == driver })
}

// NeedsDriver reports whether any Vdev needs DriverFile.
func (a Application) NeedsDriver() bool {
	return a.Uses(NetDray) || slices.ContainsFunc(a.Vdevs, func(v Vdev) bool { return v.NeedsFile || v.Shared() })
}

// memory returns EAL's memory arguments. Plain pages are one memfd, which has no name
// in the file system. EAL takes three quarters of the function's memory; the rest is
// for the program and its scratch directories. Huge pages also come from memfds, on
// demand, up to the function's limit.
func (a Application) memory() ([]string, error) {
	if len(a.HugePages) == 0 { // otherwise only the plan checks them: with fewer, an application may run already
		if err := a.CheckMemory(nil); err != nil {
			return nil, err
		}
		bytes := uint64(defaultMemory)
		if a.Memory > 0 {
			bytes = uint64(a.Memory) / 4 * 3
		}
		args := []string{"--no-huge", "--no-shconf", "-m", strconv.FormatUint(bytes>>20, 10)}
		if slices.ContainsFunc(a.Vdevs, func(v Vdev) bool { return v.SingleFileSegments }) {
			args = append(args, "--single-file-segments")
		}
		return args, nil
	}
	limit := uint64(a.pages())
	// On each node, since all of the function's pages may be on any node.
	each := slices.Repeat([]string{strconv.FormatUint(limit>>20, 10)}, max(1, a.Nodes))
	args := []string{"--single-file-segments", "--socket-limit", strings.Join(each, ",")}
	if slices.ContainsFunc(a.Vdevs, Vdev.Shared) {
		return args, nil
	}
	return append([]string{"--in-memory"}, args...), nil
}

// The files that two EAL processes share, below their devices' directory, and EAL's
// name for them.
const (
	HugeDir      = "huge" // a hugetlbfs; package dpdkring mounts it
	sharedPrefix = "ring"
)

// ringPage is the page size of that hugetlbfs.
const ringPage units.Bytes = 2 << 20

// shared makes the application one of two that share EAL's memory. The primary takes
// half of its limit at once, so that the secondary uses only what exists. A request for
// more would wait for a process that may have ended.
func (a Application) shared() ([]string, error) {
	var group []Vdev
	for _, v := range a.Vdevs {
		if v.Shared() {
			group = append(group, v)
		}
	}
	if len(group) == 0 {
		return nil, nil
	}
	if len(group) > 1 {
		return nil, fmt.Errorf("ports %s and %s both use rings in DPDK memory, which a process can share with only one other: use another transport for one of them", group[0].Port, group[1].Port)
	}
	if len(a.HugePages) == 0 {
		return nil, fmt.Errorf("port %s needs huge pages: EAL processes can share no other pages", group[0].Port)
	}
	if slices.ContainsFunc(a.HugePages, func(h chain.HugePages) bool { return h.Size != ringPage }) {
		return nil, fmt.Errorf("port %s: rings need huge pages of %v: give the function no other size", group[0].Port, ringPage)
	}
	if group[0].Driver == NetMPRingPeer && len(a.Vdevs) > 1 {
		return nil, fmt.Errorf("port %s makes its function a secondary EAL process, which can have no other dpdk port: make it the link's first end, or use another transport", group[0].Port)
	}
	// EAL compares it with the paths of mounts. Only programs on the host share memory.
	args := []string{"--file-prefix", sharedPrefix, "--huge-dir", filepath.Join(group[0].SocketDir(), HugeDir)}
	if group[0].Driver == NetMPRingPeer {
		return append(args, "--proc-type", "secondary"), nil
	}
	return append(args, "--proc-type", "primary", "-m", strconv.FormatUint(max(1, uint64(a.pages())/2>>20), 10)), nil
}

// RuntimeDir is where EAL with those arguments keeps its files: own, or the directory
// shared with another process.
func RuntimeDir(eal []string, own string) string {
	if i := slices.Index(eal, "--huge-dir"); i >= 0 && i+1 < len(eal) {
		return sockpath.Dir(filepath.Dir(eal[i+1]), RingSockets...)
	}
	return own
}

// Only returns the application with only one of its ports, which then is the first of
// its driver. A program that measures over this port uses it.
func (a Application) Only(port string) (Application, bool) {
	i := slices.IndexFunc(a.Vdevs, func(v Vdev) bool { return v.Port == port })
	if i < 0 {
		return Application{}, false
	}
	a.Vdevs = a.Vdevs[i : i+1]
	return a, true
}

// lcores numbers the application's threads from 0, whatever its CPUs, and pins each to
// its CPU. There are at least two, because most applications have a control thread and
// a worker; on one CPU they share it. Threads of an unpinned function run on any CPU.
func (a Application) lcores() string {
	var list []string
	n, first := max(2, len(a.CPUs)), 0
	if !a.Pinned {
		n = max(2, a.Lcores)
	}
	if a.Uses(NetMPRingPeer) {
		first = peerLcore
	}
	for i := range n {
		on := strconv.Itoa(a.CPUs[i%len(a.CPUs)])
		if !a.Pinned {
			on = "(" + numbers(a.CPUs) + ")"
		}
		list = append(list, strconv.Itoa(first+i)+"@"+on)
	}
	return strings.Join(list, ",")
}

// peerLcore is the first lcore of a secondary process, half of Debian's maximum. Both
// processes share the packet pools, and each thread has a pool cache at its lcore
// number.
const peerLcore = 64

func numbers(list []int) string {
	var words []string
	for _, n := range list {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ",")
}

// vdev returns the value of a --vdev argument.
func (a Application) vdev(name string, v Vdev) (string, error) {
	options := v.Options
	if v.Driver == NetDray && !a.Inside {
		options = join(options, "dir="+a.Ports)
	}
	dir := a.dir(v)
	options = strings.ReplaceAll(options, "{dir}", dir)
	// EAL splits at commas, and DRAY_EAL is split at blanks.
	if strings.ContainsAny(dir+a.Ports, ", \t\n\"'\\") && !a.Inside {
		return "", fmt.Errorf("port %s: a DPDK device argument cannot hold a path with spaces, commas or quotes: %q: choose another state directory with DRAY_STATE", v.Port, dir+a.Ports)
	}
	return join(name, options), nil
}

// dir is a device's directory from the application's view.
func (a Application) dir(v Vdev) string {
	if a.Inside {
		return v.Inside()
	}
	return v.ReachedAt()
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ",")
}

// Expand replaces each argument that equals Argument by EAL's arguments.
func Expand(argv, eal []string) []string {
	var all []string
	for _, arg := range argv {
		if arg == Argument {
			all = append(all, eal...)
			continue
		}
		all = append(all, arg)
	}
	return all
}
