// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/matrix"
	"github.com/drayage/dray/internal/spec/parse"
	"go.yaml.in/yaml/v3"
)

// toolCell is what a tool's cells have besides the tool: fields that it needs, other
// fields that it takes, and the tool's own rules; nil: it has none.
type toolCell struct {
	needs, takes []string
	check        func(d *parse.Decoder, c *Cell, values map[string]*yaml.Node)
}

// linked are the fields that every tool takes which measures a link between two
// functions.
var linked = []string{"forwarding", "qdisc", "rate", "at", "queue", "far_queue", "datapath", "kernel", "vm_runtime", "hosts", "underlay", "delay"}

var toolCells = map[Tool]toolCell{
	ToolFrames:     {[]string{"transport", "face", "runtime", "size", "load"}, []string{"vnf", "forwarding", "batch", "nohz_full", "datapath"}, checkFrames},
	ToolTCP:        {[]string{"transport", "runtime"}, append([]string{"message", "buffer"}, linked...), nil},
	ToolRequests:   {[]string{"transport", "runtime"}, append([]string{"bulk", "buffer"}, linked...), nil},
	ToolPingPong:   {[]string{"transport", "runtime"}, append([]string{"bulk"}, linked...), nil},
	ToolUDP:        {[]string{"transport", "runtime", "load"}, append([]string{"message", "times"}, linked...), checkBitrate},
	ToolOneWay:     {[]string{"transport", "runtime", "load"}, append([]string{"message"}, linked...), checkBitrate},
	ToolEcho:       {[]string{"transport", "face", "runtime"}, []string{"far_runtime", "forwarding", "datapath", "kernel", "hosts", "underlay", "delay", "qdisc", "rate", "queue"}, nil},
	ToolSockets:    {[]string{"transport", "runtime"}, []string{"kernel_face"}, checkSockets},
	ToolClocks:     {[]string{"transport", "runtime"}, nil, nil},
	ToolStart:      {[]string{"runtime"}, []string{"memory"}, nil},
	ToolChecks:     {[]string{"runtime"}, []string{"nodes"}, nil},
	ToolDensity:    {[]string{"runtime", "functions"}, nil, nil},
	ToolRecovery:   {[]string{"runtime"}, []string{"transport"}, nil},
	ToolImage:      {[]string{"image", "runtime"}, nil, checkImage},
	ToolCyclictest: {nil, []string{"runtime", "kernel", "stress"}, nil},
	ToolSpin:       {[]string{"runtime"}, []string{"nohz_full"}, checkSpin},
	ToolPool:       {[]string{"runtime", "workers"}, []string{"event", "state"}, checkPool},
	ToolRAN:        {[]string{"transport", "face", "runtime"}, []string{"forwarding", "datapath", "hosts"}, checkRAN},
	ToolQueue:      {[]string{"transport", "face", "runtime", "qdisc", "rate"}, []string{"queue", "load", "message", "times", "kernel"}, checkQueue},
	ToolFronthaul:  {[]string{"transport", "face", "runtime"}, []string{"forwarding", "datapath", "event", "qdisc", "rate", "queue"}, checkFronthaul},
}

// checkFrames checks the rules of draygen's cells.
func checkFrames(d *parse.Decoder, c *Cell, values map[string]*yaml.Node) {
	if load := c.Offered(); load.Searched() || load.OfPDR {
		d.Fail(values["load"], "write max or a rate; a matrix of dray bench searches", "an experiment does not search for a rate")
	}
	if values["batch"] != nil && c.Face != "" && c.Face != chain.FaceNetdev {
		d.Fail(values["batch"], "remove it, or write face: netdev", "only ports with face netdev send by system calls")
	}
	if c.VNF == "" {
		c.VNF = matrix.VNFDirect
	}
}

// checkBitrate refuses loads that iperf cannot offer.
func checkBitrate(d *parse.Decoder, c *Cell, values map[string]*yaml.Node) {
	if c.Load != "" && c.Offered().Bitrate == 0 {
		d.Fail(values["load"], `write a bit rate such as "95Mbps"`, "the tool %s sends at a bit rate", c.Tool)
	}
}

func checkImage(d *parse.Decoder, c *Cell, values map[string]*yaml.Node) {
	if c.Runtime != "" && c.Runtime != chain.RuntimeRunc {
		d.Fail(values["runtime"], "write runc", "an image is the root file system of a function with runtime runc")
	}
}

func checkSockets(d *parse.Decoder, c *Cell, values map[string]*yaml.Node) {
	if c.KernelFace == KernelFaceVeth && c.Runtime == chain.RuntimeDocker {
		d.Fail(values["runtime"], "write runc", "testpmd is the function's command, and no image of Drayage has it")
	}
}

// checkRAN refuses ports that the radio of srsRAN does not have, and machines.
func checkRAN(d *parse.Decoder, c *Cell, values map[string]*yaml.Node) {
	if c.Face == chain.FaceDPDK {
		d.Fail(values["face"], "write native for messages over shared memory, or netdev for ZeroMQ", "the radio has no dpdk port")
	}
	if c.Runtime == chain.RuntimeVM {
		d.Fail(values["runtime"], "write process, runc or docker", "the base station of a RAN does not run in a virtual machine")
	}
}

// checkFronthaul refuses ports that the ends of a fronthaul do not have, and events that nothing could measure.
func checkFronthaul(d *parse.Decoder, c *Cell, values map[string]*yaml.Node) {
	switch {
	case c.Face == chain.FaceNative:
		d.Fail(values["face"], "write dpdk, or netdev for raw sockets", "the ends of a fronthaul have no native port")
	case c.Face == chain.FaceNetdev && c.Runtime != chain.RuntimeProcess:
		d.Fail(values["runtime"], "write process, or face: dpdk", "raw sockets need a capability that containers do not have")
	case c.Face == chain.FaceDPDK && c.Runtime != chain.RuntimeRunc:
		d.Fail(values["runtime"], "write runc", "DPDK finds its drivers in the image only if that is the function's root")
	}
	switch {
	case c.Event != "" && c.Event != EventKillDU && c.Event != EventKillRU:
		d.Fail(values["event"], "write kill-du or kill-ru", "a fronthaul has two ends, and no workers")
	case c.Event != "" && c.Transport != "shm":
		d.Fail(values["event"], "write transport: shm", "slots are counted by the ports, which only shared memory has")
	}
}

// prio is a discipline of native ports, which sends the sparse stream of the tool queue first.
const prio = "prio"

// Bytes of a datagram that draygen can number and that fits a packet.
const leastMessage, mostMessage = 18, 1472

// checkQueue refuses streams that draygen cannot send through a queue.
func checkQueue(d *parse.Decoder, c *Cell, values map[string]*yaml.Node) {
	checkBitrate(d, c, values)
	if c.Face == chain.FaceDPDK {
		d.Fail(values["face"], "write native, or netdev for the kernel's disciplines", "a dpdk port has the queue of a native one")
	}
	if c.Runtime == chain.RuntimeVM {
		d.Fail(values["runtime"], "write process, runc or docker", "waits of a virtual machine are not those of a queue")
	}
	if c.Message != 0 && (c.Message < leastMessage || c.Message > mostMessage) {
		d.Fail(values["message"], "write a number in between", "draygen's datagrams have %d to %d bytes in a packet", leastMessage, mostMessage)
	}
}

func checkSpin(d *parse.Decoder, c *Cell, values map[string]*yaml.Node) {
	if c.Runtime != "" && c.Runtime != chain.RuntimeVM {
		d.Fail(values["runtime"], "write vm", "only a virtual machine boots with its own kernel command line, which sets the tick")
	}
}

func checkPool(d *parse.Decoder, c *Cell, values map[string]*yaml.Node) {
	if c.Runtime == chain.RuntimeDocker || c.Runtime == chain.RuntimeVM {
		d.Fail(values["runtime"], "write runc or process", "the functions of a pool run the host's programs, and their ports share its memory")
	}
	if c.Event == EventKillDU || c.Event == EventKillRU {
		d.Fail(values["event"], "write kill, leave or add", "a pool has workers, and no ends of a fronthaul")
	}
	if c.Workers == 1 && (c.Event == EventKill || c.Event == EventLeave) {
		d.Fail(values["workers"], "write at least 2", "the only worker of a pool leaves its sessions to nobody")
	}
}

// checkCellQdisc checks the rules between the fields of the link's discipline.
func checkCellQdisc(d *parse.Decoder, c *Cell, values map[string]*yaml.Node) {
	if values["rate"] != nil && values["qdisc"] == nil {
		d.Fail(values["rate"], "add qdisc, or remove it", "a rate needs a qdisc")
	}
	if c.Qdisc == prio && (c.Tool != ToolQueue || c.Face != chain.FaceNative || c.Queue != "") {
		d.Fail(values["qdisc"], "use the tool queue with face: native and without queue, or another qdisc", "only classes of a native port have the qdisc prio")
	}
	if c.At != "" && (c.Transport != "ovs" || !slices.Contains(chain.OVSKinds, c.Qdisc)) {
		d.Fail(values["at"], "remove it, or use the transport ovs and one of "+strings.Join(chain.OVSKinds, ", "), "only Open vSwitch sets a qdisc itself")
	}
	for _, name := range []string{"queue", "far_queue"} {
		if values[name] != nil && c.At != "" {
			d.Fail(values[name], "remove it, or at: switch", "at the switch only a FIFO can queue below the shaper")
		}
		if values[name] != nil && c.Qdisc != "tbf" && c.Qdisc != "htb" && c.Qdisc != "hfsc" {
			d.Fail(values[name], "give the cell the qdisc tbf, htb or hfsc", "a queue needs a shaper above it")
		}
	}
	if values["far_queue"] != nil && values["queue"] == nil && c.At == "" {
		d.Fail(values["far_queue"], "add queue, or remove it", "far_queue replaces queue at the far end, and the cell has none")
	}
}

// checkCellMachine refuses the fields of a machine without one.
func checkCellMachine(d *parse.Decoder, c *Cell, values map[string]*yaml.Node) {
	if c.Runtime == chain.RuntimeVM {
		return
	}
	for name, why := range map[string]string{
		"vm_runtime": "has a runtime of its own", "memory": "has memory of its own",
		"nohz_full": "boots with its own kernel command line, which sets the tick",
	} {
		if values[name] != nil {
			d.Fail(values[name], "remove it, or write runtime: vm", "only a virtual machine %s", why)
		}
	}
}

// checkCellHosts requires hosts exactly for cells whose transport joins hosts; takes
// says whether the tool measures between hosts.
func checkCellHosts(d *parse.Decoder, c *Cell, values map[string]*yaml.Node, takes bool) {
	tunnel := slices.Contains(chain.Tunnels, c.Transport)
	switch {
	case tunnel && !takes:
		d.Fail(values["transport"], "use another tool, or another transport", "the tool %s measures on one host, and %s joins two", c.Tool, c.Transport)
	case tunnel && values["hosts"] == nil:
		d.Fail(values["transport"], "add hosts: 2, or use another transport", "the transport %s joins hosts", c.Transport)
	case !tunnel && takes && values["hosts"] != nil:
		d.Fail(values["hosts"], "remove it, or use the transport "+parse.Either(chain.Tunnels), "only a tunnel joins hosts")
	}
	for _, name := range []string{"underlay", "delay"} {
		if values[name] != nil && values["hosts"] == nil {
			d.Fail(values[name], "add hosts: 2, or remove it", "an underlay needs hosts")
		}
	}
}
