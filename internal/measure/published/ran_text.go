// SPDX-License-Identifier: Apache-2.0

package published

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/drayage/dray/internal/function/image"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

// ranImage is the recipe of the image with a RAN's programs.
const ranImage = "ran"

// The functions of a RAN's chain, and their links.
const (
	ranCore, ranBase, ranMobile = "epc", "enb", "ue"
	ranBackhaul                 = "s1"
	ranRadio                    = "radio" // both directions, over ZeroMQ
	ranDown, ranUp              = "dl", "ul"
)

// ranText is core network, base station and mobile: the cell's transport carries S1, and the radio's
// samples are messages over shared memory if the cell's face is native, or ZeroMQ's TCP over a veth pair. Core network and
// mobile configure TUN devices, so they are processes; the cell's runtime is the base station's.
func ranText(_ *inventory.Inventory, c experiment.Cell) string {
	var b strings.Builder
	if c.Hosts > 0 {
		b.WriteString("hosts: {names: [core, site], underlay: {mtu: 1700}}\n")
	}
	b.WriteString("functions:\n")
	b.WriteString(ranFunction(c, ranCore, "core", []string{"--s1", "10.45.0.1"}, "{name: s1, ip: 10.45.0.1/24, mtu: 1600}"))
	b.WriteString(ranFunction(c, ranBase, "site", append([]string{"--s1", "10.45.0.2", "--mme", "10.45.0.1"}, ranSamples(c, 1)...),
		"{name: s1, ip: 10.45.0.2/24, mtu: 1600}, "+ranPorts(c, 1)))
	b.WriteString(ranFunction(c, ranMobile, "site", ranSamples(c, 2), ranPorts(c, 2)))
	fmt.Fprintf(&b, "links:\n  - {name: s1, ends: [epc.s1, enb.s1], transport: %s%s, requires: {latency: 10ms, percentile: 95, packet_loss_ratio: 1e-2, min_bitrate: 10Mbps}}\n",
		c.Transport, forwardingText(c))
	if c.Face != chain.FaceNative {
		b.WriteString("  - {name: radio, ends: [enb.radio, ue.radio], transport: veth}\n")
		return b.String()
	}
	for _, link := range []string{ranDown, ranUp} {
		fmt.Fprintf(&b, "  - {name: %s, ends: [enb.%[1]s, ue.%[1]s], transport: shm, messages: {size: 256Ki, count: 64}}\n", link)
	}
	return b.String()
}

// ranFunction is a function that runs the image's launcher.
func ranFunction(c experiment.Cell, role, host string, arguments []string, ports string) string {
	runtime := chain.RuntimeProcess
	root, program := "", filepath.Join(image.Rootfs(ranImage), "usr/local/bin/dray-ran")
	if role == ranBase && c.Runtime != chain.RuntimeProcess {
		runtime, program = c.Runtime, "dray-ran"
		root = fmt.Sprintf(", rootfs: %q", image.Rootfs(ranImage))
		if c.Runtime == chain.RuntimeDocker {
			root = imageField(c)
		}
	}
	more := ""
	if c.Hosts > 0 {
		more += ", host: " + host
	}
	if role != ranMobile {
		more += ", sctp: " + ranSCTP(c)
	}
	return fmt.Sprintf("  - {name: %s, runtime: %s%s%s, pids: 4096, command: [%q, %s, %s], ports: [%s]}\n",
		role, runtime, root, more, program, role, strings.Join(quoted(arguments), ", "), ports)
}

func quoted(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, fmt.Sprintf("%q", s))
	}
	return out
}

// ranSCTP is how S1's control plane is carried: by UDP if the base station has no capability.
func ranSCTP(c experiment.Cell) string {
	if c.Runtime == chain.RuntimeProcess {
		return "ip"
	}
	return "udp"
}

// ranPorts are the radio's ports of the base station (1) or the mobile (2).
func ranPorts(c experiment.Cell, end int) string {
	if c.Face != chain.FaceNative {
		return fmt.Sprintf("{name: radio, ip: 10.46.0.%d/24, mtu: 9000}", end)
	}
	return "{name: dl, face: native}, {name: ul, face: native}"
}

// ranSamples are the launcher's arguments for where the samples of that end go.
func ranSamples(c experiment.Cell, end int) []string {
	ends := []string{"tcp://10.46.0.1:2000", "tcp://10.46.0.2:2001"}
	kind := "zmq"
	if c.Face == chain.FaceNative {
		kind, ends = "dray", []string{ranDown, ranUp}
	}
	send, receive := ends[end-1], ends[2-end]
	return []string{"--radio", kind + ":" + send + "," + receive, "--prb", fmt.Sprint(ranBlocks)}
}
