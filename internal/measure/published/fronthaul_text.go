// SPDX-License-Identifier: Apache-2.0

package published

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/drayage/dray/internal/function/image"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

// fronthaulImage is the recipe of the image with both ends of a fronthaul.
const fronthaulImage = "fronthaul"

// The functions of a fronthaul's chain: distributed unit and radio unit; and their link, which is also the
// name of each port.
const (
	fronthaulDU, fronthaulRU = "du", "ru"
	fronthaulLink            = "fh"
)

// What the link of a fronthaul must do. The radio unit's windows leave fronthaulDelay to the link (O-RAN's T12 max).
const (
	fronthaulDelay      = 400 * time.Microsecond
	fronthaulPercentile = 95.0
	fronthaulLoss       = 1e-3
)

// fronthaulText is both ends of a fronthaul. They wait for a signal, because their link is judged first.
// A port of the kernel takes raw sockets, and so a process; the others are in containers without capabilities.
func fronthaulText(_ *inventory.Inventory, c experiment.Cell) string {
	var b strings.Builder
	b.WriteString("functions:\n")
	for i, role := range []string{fronthaulDU, fronthaulRU} {
		root, program := "", filepath.Join(image.Rootfs(fronthaulImage), "usr/local/bin/dray-fronthaul")
		if c.Runtime != chain.RuntimeProcess {
			root, program = fmt.Sprintf(", rootfs: %q", image.Rootfs(fronthaulImage)), "dray-fronthaul"
		}
		end := fronthaulLink
		if c.Face == chain.FaceDPDK {
			end = "--, $(DRAY_EAL)"
		}
		fmt.Fprintf(&b, "  - {name: %s, runtime: %s%s, pids: 4096, restart: always, command: [%s], ports: [{name: %s, face: %s, mtu: 9000, mac: \"%s\"%s}]}\n",
			role, c.Runtime, root, waiting(fmt.Sprintf("%q, %s, --link, \"%d\", %s", program, role, fronthaulDelay.Microseconds(), end)),
			fronthaulLink, c.Face, fronthaulAddress(i), qos(c, c.Queue))
	}
	more := ", load: " + fronthaulLoad
	switch c.Transport {
	case "memif":
		more += ", isolation: slice"
	case "shm":
		more = "" // its own traffic is what it is
	}
	fmt.Fprintf(&b, "links:\n  - {name: %[1]s, ends: [%[2]s.%[1]s, %[3]s.%[1]s], transport: %[4]s%[5]s%[6]s, requires: {latency: %[7]v, percentile: %[8]v, packet_loss_ratio: %[9]v}}\n",
		fronthaulLink, fronthaulDU, fronthaulRU, c.Transport, more, forwardingText(c), fronthaulDelay, fronthaulPercentile, fronthaulLoss)
	return b.String()
}

// fronthaulLoad is what the cell sends to the radio unit.
const fronthaulLoad = "108Mbps"

// fronthaulAddress is the address of an end, which the image's launcher expects.
func fronthaulAddress(end int) string { return fmt.Sprintf("02:00:00:00:00:%02x", end+1) }
