// SPDX-License-Identifier: Apache-2.0

// Package inventory holds what is known of one host: what `dray doctor` found
// and what calibration measured. It is data only, so that the planner can be
// run anywhere on a saved inventory.
package inventory

import (
	"fmt"
	"time"
)

// Status says whether a thing can be used on this host.
type Status string

const (
	OK       Status = "ok"
	Missing  Status = "missing"   // Reason says what is missing, Fix how to get it
	NeverRun Status = "never-run" // could be tried, but has never been run on this host
)

// Item is one thing that a host may or may not be able to do.
type Item struct {
	Name    string `json:"name"`
	Status  Status `json:"status"`
	Version string `json:"version,omitempty"`
	Reason  string `json:"reason,omitempty"` // why it is not ok, one clause
	Fix     string `json:"fix,omitempty"`    // the package or setting that mends it
}

// NotTried is the item of a thing that only root can try. It may work here, so a
// plan may use it.
func NotTried(name string) Item {
	return Item{Name: name, Status: NeverRun, Reason: "not tried: only root can", Fix: "sudo dray doctor"}
}

// Untried reports whether the item is one that NotTried made.
func (i Item) Untried() bool { return i.Status == NeverRun && i.Fix != "" }

// Inventory is one host as the planner sees it.
type Inventory struct {
	Host        Host          `json:"host"`
	Transports  []Transport   `json:"transports"`
	Runtimes    []Item        `json:"runtimes"`
	Qdiscs      []Item        `json:"qdiscs"`
	Instruments []Item        `json:"instruments"`
	DPDK        []Item        `json:"dpdk,omitempty"` // what functions with dpdk ports stand on
	Interfaces  []Interface   `json:"interfaces"`     // candidates for uplinks
	Calibration []Calibration `json:"calibration,omitempty"`
}

// Host is the machine: cores, memory, kernel.
type Host struct {
	Hostname    string    `json:"hostname"`
	Kernel      string    `json:"kernel"`  // uname -r
	CmdLine     string    `json:"cmdline"` // /proc/cmdline
	OS          string    `json:"os"`      // PRETTY_NAME of /etc/os-release
	Arch        string    `json:"arch"`    // GOARCH
	CPUModel    string    `json:"cpu_model"`
	CPUs        []int     `json:"cpus"`         // online, and allowed for this process or isolated: what a function can be given; ascending
	Isolated    []int     `json:"isolated"`     // isolcpus, ascending
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

// VirtualTCG is the hypervisor of a machine whose processor QEMU emulates in
// software.
const VirtualTCG = "QEMU TCG"

// LabParameter is a word of the kernel's command line of a guest that `dray lab`
// has booted in place of the host.
const LabParameter = "dray.lab=1"

// HugePg counts the hugetlb pages of one size.
type HugePg struct {
	Size  uint64 `json:"size"` // bytes
	Total int    `json:"total"`
	Free  int    `json:"free"`
}

// Interface is a host network interface that a link may use as an uplink.
type Interface struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // netlink link type: "device", "veth", …
	MTU  int    `json:"mtu"`
	Up   bool   `json:"up"`
	// VFs are the virtual functions of it (SR-IOV) that can become ports.
	VFs int `json:"vfs,omitempty"`
}

// Transport is one driver: whether it can run here, and what it can do.
type Transport struct {
	Item
	Caps Caps `json:"caps"`
}

// Caps is what a transport driver can do and what it costs, as data.
type Caps struct {
	Faces      []string `json:"faces"`                // chain.Face values it can serve
	NeedsFace  string   `json:"needs_face,omitempty"` // the face that a port at least must have
	Machines   bool     `json:"machines,omitempty"`   // also takes interfaces of virtual machines, as it does the face dpdk
	Isolation  string   `json:"isolation"`            // the strictest chain.Isolation it satisfies
	MinEnds    int      `json:"min_ends"`             // port ends
	MaxEnds    int      `json:"max_ends"`             // 0: no limit
	Uplink     bool     `json:"uplink"`               // one end may be a host interface
	VFs        bool     `json:"vfs,omitempty"`        // each port takes a virtual function of one network card: the uplink, or any
	SameNetns  bool     `json:"same_netns"`           // both ends must be in one network namespace
	Tunnel     bool     `json:"tunnel,omitempty"`     // joins ports on different hosts, and no others
	Shapes     bool     `json:"shapes"`               // carries qdiscs on its ports
	OwnShapes  bool     `json:"own_shapes,omitempty"` // its switch sets qdiscs itself, on its side of the ports
	Forwards   bool     `json:"forwards,omitempty"`   // a link may say how it forwards (chain.Forwarding)
	MaxMTU     int      `json:"max_mtu"`              // bytes of L3 packet
	MaxMessage int      `json:"max_message"`          // bytes of a message, beside packets; 0: carries none
	Rank       int      `json:"rank"`                 // auto prefers the smallest; negative: never chosen by auto
	Privileged bool     `json:"privileged,omitempty"` // needs privileges that a chain's policy must permit
	Privileges string   `json:"privileges"`           // what the function needs beside its own namespaces; "none"
	Processes  int      `json:"processes"`            // host processes it starts for a link
	HugePages  bool     `json:"huge_pages,omitempty"` // its functions must have huge pages
	OneUser    bool     `json:"one_user,omitempty"`   // joins only processes that Drayage starts, all as one user of the host
	BusyCPUs   int      `json:"busy_cpus,omitempty"`  // CPUs that those keep busy by polling, also on an idle link; of a tunnel on each host
	// PacketMemory is what those take for packets, of a tunnel on each host; nil: next to nothing.
	PacketMemory *PacketMemory `json:"packet_memory,omitempty"`
	Copies       int           `json:"copies"`      // payload copies per packet, sender's buffer to receiver's
	KernelPath   string        `json:"kernel_path"` // one clause: the way of a packet
	Note         string        `json:"note,omitempty"`
}

// PacketMemory is the memory that a switch takes for packets: huge pages, if the
// functions of all its dpdk ports have some.
type PacketMemory struct {
	Other   int  `json:"other"`    // bytes beside the packets
	Buffers int  `json:"buffers"`  // packets
	PerPort bool `json:"per_port"` // that many for each port
	Extra   int  `json:"extra"`    // bytes of a buffer beside the L3 packet
	Align   int  `json:"align"`    // bytes that a buffer is a multiple of
	Least   int  `json:"least"`    // bytes of the smallest buffer
	Record  int  `json:"record"`   // bytes that go with each buffer
}

// Buffer is the size of a buffer for L3 packets of at most mtu bytes.
func (m PacketMemory) Buffer(mtu int) int {
	return max(m.Least, (mtu+m.Extra+m.Align-1)/m.Align*m.Align)
}

// MiB is what a link with so many ports takes, in whole MiB.
func (m PacketMemory) MiB(mtu, ports int) int {
	buffers := m.Buffers
	if m.PerPort {
		buffers *= ports
	}
	const mib = 1 << 20
	return (m.Other + buffers*(m.Buffer(mtu)+m.Record) + mib - 1) / mib
}

// Calibration is what was measured of one transport on this host, from records.
// It is evidence for the planner; without it stated defaults stand in.
type Calibration struct {
	Transport string    `json:"transport"`
	Measured  time.Time `json:"measured"`
	Source    string    `json:"source"` // record file and run id, or "stated default"
	// Kernel and CPUModel are those of the host when it was measured.
	Kernel   string `json:"kernel"`
	CPUModel string `json:"cpu_model"`
	// Stale says why it is no evidence on this host as it is now; empty: it is.
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
	LossRatio  float64       `json:"loss_ratio"`  // at the load of the calibration (upper bound)
	PDVp99     time.Duration `json:"pdv_p99"`     // ns
	Marks      []string      `json:"marks,omitempty"`
}

// Age is how old the calibration is, in words: "3 days old"; empty if that is
// unknown.
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

// Transport returns the driver of that name, or nil.
func (inv *Inventory) Transport(name string) *Transport {
	for i := range inv.Transports {
		if inv.Transports[i].Name == name {
			return &inv.Transports[i]
		}
	}
	return nil
}

// Find returns the item of that name, or nil.
func Find(items []Item, name string) *Item {
	for i := range items {
		if items[i].Name == name {
			return &items[i]
		}
	}
	return nil
}
