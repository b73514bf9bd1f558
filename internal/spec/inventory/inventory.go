// SPDX-License-Identifier: Apache-2.0

// Package inventory holds the facts about one host: the results of `dray doctor` and of
// calibration. It is data only, so the planner can run anywhere on a saved inventory.
package inventory

import (
	"fmt"
	"net/netip"
	"time"
)

// Status says whether a thing is usable on this host.
type Status string

const (
	OK       Status = "ok"
	Missing  Status = "missing"   // Reason says what is missing, Fix how to get it
	NeverRun Status = "never-run" // could be tried, but has never been run on this host
	Unknown  Status = "unknown"   // the attempt itself failed: Reason says how, Fix what to do about it
)

// Item is one thing that a host may or may not support.
type Item struct {
	Name    string `json:"name"`
	Status  Status `json:"status"`
	Version string `json:"version,omitempty"`
	Reason  string `json:"reason,omitempty"` // why it is not ok, one clause
	Fix     string `json:"fix,omitempty"`    // the package or setting that fixes it
}

// NotTried is the item for a thing that only root can try. It may work, so a plan may
// use it.
func NotTried(name string) Item {
	return Item{Name: name, Status: NeverRun, Reason: "not tried: only root can", Fix: "run dray doctor as root"}
}

// NotNeeded is the item for a thing that the chain does not use, so that it was not tried.
func NotNeeded(name string) Item {
	return Item{Name: name, Status: NeverRun, Reason: "not tried: the chain does not need it"}
}

// Usable reports whether a plan may use it.
func (i Item) Usable() bool { return i.Status != Missing && i.Status != Unknown }

// Unusable says why it is not usable, as the end of a sentence that begins with its name.
func (i Item) Unusable() string {
	if i.Status == Unknown {
		return "could not be tried: " + i.Reason
	}
	return "is missing on this host: " + i.Reason
}

// Untried reports whether the item is one that NotTried made.
func (i Item) Untried() bool { return i.Status == NeverRun && i.Fix != "" }

// ProtocolSCTP is the Item of Protocols that says whether the kernel has SCTP.
const ProtocolSCTP = "sctp"

// Inventory is one host as the planner sees it.
type Inventory struct {
	Host        Host          `json:"host"`
	Transports  []Transport   `json:"transports"`
	Runtimes    []Item        `json:"runtimes"`
	Qdiscs      []Item        `json:"qdiscs"`
	Instruments []Item        `json:"instruments"`
	DPDK        []Item        `json:"dpdk,omitempty"`        // requirements of functions with dpdk ports
	Protections []Item        `json:"protections,omitempty"` // how this kernel protects functions from each other
	Protocols   []Item        `json:"protocols,omitempty"`   // of the kernel, which functions may need
	Interfaces  []Interface   `json:"interfaces"`            // candidates for uplinks
	Calibration []Calibration `json:"calibration,omitempty"`
	// CalibrationFault says why the stored calibration cannot be used, and what to do.
	CalibrationFault string `json:"calibration_fault,omitempty"`
}

// Host is the machine: cores, memory, kernel.
type Host struct {
	Hostname    string    `json:"hostname"`
	Kernel      string    `json:"kernel"`  // uname -r
	CmdLine     string    `json:"cmdline"` // /proc/cmdline
	OS          string    `json:"os"`      // PRETTY_NAME of /etc/os-release
	Arch        string    `json:"arch"`    // GOARCH
	CPUModel    string    `json:"cpu_model"`
	CPUs        []int     `json:"cpus"`         // usable by functions: online, and allowed for this process or isolated; ascending
	Isolated    []int     `json:"isolated"`     // by isolcpus, or kept free of programs at run time; ascending
	Governor    string    `json:"governor"`     // scaling governor; "none" if there is no cpufreq
	NUMANodes   int       `json:"numa_nodes"`   // at least 1
	MemoryTotal uint64    `json:"memory_total"` // bytes
	MemoryFree  uint64    `json:"memory_free"`  // MemAvailable, bytes
	HugePages   []HugePg  `json:"hugepages"`
	Load1       float64   `json:"load1"`    // 1-minute load average
	Realtime    bool      `json:"realtime"` // PREEMPT_RT
	Virtual     string    `json:"virtual"`  // hypervisor, or "" on bare metal
	Cgroup      string    `json:"cgroup"`   // "v1", "v2" or "hybrid"
	BootID      string    `json:"boot_id"`
	Time        time.Time `json:"time"`
}

// VirtualTCG is the hypervisor of a VM whose processor QEMU emulates in software.
const VirtualTCG = "QEMU TCG"

// LabParameter is on the kernel command line of a guest that `dray lab` boots to
// replace the host.
const LabParameter = "dray.lab=1"

// HugePg counts the hugetlb pages of one size.
type HugePg struct {
	Size  uint64 `json:"size"` // bytes
	Total int    `json:"total"`
	Free  int    `json:"free"` // and not reserved
}

// Interface is a host network interface that a link may use as an uplink.
type Interface struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // netlink link type: "device", "veth", …
	MTU  int    `json:"mtu"`
	Up   bool   `json:"up"`
	// VFs is the number of SR-IOV virtual functions that can become ports.
	VFs int `json:"vfs,omitempty"`
	// Network is the interface, or the bridge or bond above it, that all interfaces of one
	// network have in common; empty: not known.
	Network string `json:"-"`
	// Stations are what this host is known to have on the interface's network: the host
	// itself, and ports of running chains.
	Stations []Station `json:"-"`
}

// Station has addresses on the network of an interface.
type Station struct {
	Chain string // whose Port it is; empty: the host itself
	Port  string // "function.port"
	IPs   []netip.Addr
	MAC   string
}

// String names the station.
func (s Station) String() string {
	if s.Chain == "" {
		return "this host"
	}
	return "the port " + s.Port + " of chain " + s.Chain
}

// Transport is one driver: whether it can run here, and what it can do.
type Transport struct {
	Item
	Caps Caps `json:"caps"`
}

// Caps is a transport driver's capabilities and costs, as data.
type Caps struct {
	Faces     []string `json:"faces"`                // chain.Face values it can serve
	NeedsFace string   `json:"needs_face,omitempty"` // the face that at least one port must have
	Machines  bool     `json:"machines,omitempty"`   // also takes VM interfaces, like the face dpdk
	// MachineMemory says that its memory is also a device of a virtual machine, in
	// which a program opens the port with the face native.
	MachineMemory bool   `json:"machine_memory,omitempty"`
	Isolation     string `json:"isolation"`             // the strictest chain.Isolation it satisfies
	MinEnds       int    `json:"min_ends"`              // port ends
	MaxEnds       int    `json:"max_ends"`              // of a tunnel on each host; 0: no limit
	Uplink        bool   `json:"uplink"`                // one end may be a host interface
	VFs           bool   `json:"vfs,omitempty"`         // each port takes a VF of one network card: the uplink, or any
	SameNetns     bool   `json:"same_netns"`            // both ends must be in one network namespace
	Tunnel        bool   `json:"tunnel,omitempty"`      // joins ports on different hosts only
	Shapes        bool   `json:"shapes"`                // supports qdiscs on its ports
	OwnShapes     bool   `json:"own_shapes,omitempty"`  // its switch attaches qdiscs itself, on its side of the ports
	PortQueues    bool   `json:"port_queues,omitempty"` // its ports queue what they send in user space
	Forwards      bool   `json:"forwards,omitempty"`    // a link may choose how it forwards (chain.Forwarding)
	MaxMTU        int    `json:"max_mtu"`               // bytes of L3 packet
	MaxMessage    int    `json:"max_message"`           // bytes of a message; 0: carries none
	Rank          int    `json:"rank"`                  // auto prefers the smallest; negative: never chosen by auto
	Privileged    bool   `json:"privileged,omitempty"`  // needs privileges that a chain's policy must permit
	Privileges    string `json:"privileges"`            // the function's privileges beyond its own namespaces; "none"
	Processes     int    `json:"processes"`             // host processes it starts for a link
	HugePages     bool   `json:"huge_pages,omitempty"`  // its functions must have huge pages
	OneUser       bool   `json:"one_user,omitempty"`    // joins only processes that Drayage starts as one host user
	Trust         bool   `json:"trust,omitempty"`       // each end can harm the other: auto takes it only between ends that trust each other (isolation slice)
	BusyCPUs      int    `json:"busy_cpus,omitempty"`   // CPUs those processes keep busy by polling, even on an idle link; for a tunnel per host
	// PacketMemory is those processes' packet memory, for a tunnel on each host; nil:
	// next to nothing.
	PacketMemory *PacketMemory `json:"packet_memory,omitempty"`
	Copies       int           `json:"copies"`      // payload copies per packet, sender's buffer to receiver's
	KernelPath   string        `json:"kernel_path"` // one clause: the data path of a packet
	Note         string        `json:"note,omitempty"`
}

// PacketMemory is a switch's memory for packets: huge pages, if the functions of all
// its dpdk ports have some.
type PacketMemory struct {
	Other   int  `json:"other"`    // bytes not used for packets
	Buffers int  `json:"buffers"`  // packets
	PerPort bool `json:"per_port"` // Buffers is per port
	Extra   int  `json:"extra"`    // bytes of a buffer beyond the L3 packet
	Align   int  `json:"align"`    // alignment of a buffer, bytes
	Least   int  `json:"least"`    // minimum size of a buffer, bytes
	Record  int  `json:"record"`   // bytes of metadata per buffer
}

// Buffer is the size of a buffer for L3 packets of at most mtu bytes.
func (m PacketMemory) Buffer(mtu int) int {
	return max(m.Least, (mtu+m.Extra+m.Align-1)/m.Align*m.Align)
}

// MiB is the memory of a link with that many ports, in whole MiB.
func (m PacketMemory) MiB(mtu, ports int) int {
	buffers := m.Buffers
	if m.PerPort {
		buffers *= ports
	}
	const mib = 1 << 20
	return (m.Other + buffers*(m.Buffer(mtu)+m.Record) + mib - 1) / mib
}

// Calibration is the measured performance of one transport on this host, from records.
// It is evidence for the planner, in place of stated defaults.
type Calibration struct {
	Transport string    `json:"transport"`
	Measured  time.Time `json:"measured"`
	Source    string    `json:"source"` // record file and run id, or "stated default"
	// Kernel and CPUModel describe the host at the time of measurement.
	Kernel   string `json:"kernel"`
	CPUModel string `json:"cpu_model"`
	// Stale says why it is no longer evidence on this host; empty: it is.
	Stale string `json:"stale,omitempty"`
	// Latency maps percentiles to one-way latency (upper bound), ascending by Percentile.
	Latency []LatencyPoint `json:"latency"`
	// UDPBitrate and TCPBitrate are bit/s of payload per direction (lower bounds): of
	// datagrams in frames of UDPFrame bytes with FCS, and of one TCP stream. 0: not
	// measured. Neither is evidence for the other: they can differ several times over.
	UDPBitrate uint64        `json:"udp_bitrate"`
	UDPFrame   int           `json:"udp_frame"`
	TCPBitrate uint64        `json:"tcp_bitrate"`
	PacketRate uint64        `json:"packet_rate"` // packets/s per direction, 64 B frames (lower bound)
	LossRatio  float64       `json:"loss_ratio"`  // at the calibration's load (upper bound)
	PDVp99     time.Duration `json:"pdv_p99"`     // ns
	Marks      []string      `json:"marks,omitempty"`
}

// Age is the calibration's age in words: "3 days old"; empty if unknown.
func (c Calibration) Age(now time.Time) string {
	age := now.Sub(c.Measured)
	switch {
	case now.IsZero() || c.Measured.IsZero():
		return ""
	case age < time.Hour:
		return "less than an hour old"
	case age < 48*time.Hour:
		return fmt.Sprintf("%d hours old", int(age.Hours()))
	}
	return fmt.Sprintf("%d days old", int(age.Hours()/24))
}

// LatencyPoint is one quantile of a latency distribution.
type LatencyPoint struct {
	Percentile float64       `json:"percentile"`
	Latency    time.Duration `json:"latency"` // ns
}

// Transport returns the driver with that name, or nil.
func (inv *Inventory) Transport(name string) *Transport {
	for i := range inv.Transports {
		if inv.Transports[i].Name == name {
			return &inv.Transports[i]
		}
	}
	return nil
}

// Find returns the item with that name, or nil.
func Find(items []Item, name string) *Item {
	for i := range items {
		if items[i].Name == name {
			return &items[i]
		}
	}
	return nil
}
