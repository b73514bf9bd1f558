// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/chain"
	"github.com/drayage/dray/internal/inventory"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/record"
)

// The names in the chain of a configuration.
const (
	sender, receiver       = "a", "b"
	senderPort, sinkPort   = "p0", "p1"
	linkName               = "link"
	defaultMTU, frameExtra = 1500, 18 // Ethernet header and FCS
)

// chainName is that of a configuration's chain: the same in every run, so that
// what a run left that was killed goes when the next one comes to it.
func chainName(c record.Config) string {
	sum := sha256.Sum256([]byte(c.String()))
	return "bench-" + hex.EncodeToString(sum[:4])
}

// prepare is the chain of a configuration, with its text and its plan.
func prepare(m *chain.Bench, inv *inventory.Inventory, c record.Config) (*chain.Chain, []byte, *plan.Plan, error) {
	text, err := chainText(m, inv, c)
	if err != nil {
		return nil, nil, nil, err
	}
	parsed, err := chain.Parse("chain of "+c.String(), text)
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := plan.Make(parsed, inv)
	return parsed, text, p, err
}

// chainText is the chain file of a configuration.
func chainText(m *chain.Bench, inv *inventory.Inventory, c record.Config) ([]byte, error) {
	var size chain.FrameSize
	if err := size.UnmarshalText([]byte(c.Size)); err != nil {
		return nil, err
	}
	mtu := max(defaultMTU, size.Largest()-frameExtra)
	port := func(name string) string { return fmt.Sprintf("{name: %s, face: %s, mtu: %d}", name, c.Face, mtu) }
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\nname: %s\npolicy: {on_infeasible: warn%s}\nfunctions:\n",
		chain.APIVersion, chain.Kind, chainName(c), privileged(m))
	extra := more(m, inv, c)
	if t := inv.Transport(c.Transport); t != nil && t.Caps.SameNetns {
		fmt.Fprintf(&b, "  - {name: %s, runtime: %s%s, ports: [%s, %s]}\n", sender, c.Runtime, extra, port(senderPort), port(sinkPort))
	} else {
		fmt.Fprintf(&b, "  - {name: %s, runtime: %s%s, ports: [%s]}\n", sender, c.Runtime, extra, port(senderPort))
		fmt.Fprintf(&b, "  - {name: %s, runtime: %s%s, ports: [%s]}\n", receiver, c.Runtime, extra, port(sinkPort))
	}
	fmt.Fprintf(&b, "links:\n  - {name: %s, ends: [%s, %s.%s], transport: %s}\n", linkName, senderPortName, receiverOf(inv, c), sinkPort, c.Transport)
	return []byte(b.String()), nil
}

const senderPortName = sender + "." + senderPort

// receiverOf is the function that receives: the sender itself, where a transport
// joins only ports of one function.
func receiverOf(inv *inventory.Inventory, c record.Config) string {
	if t := inv.Transport(c.Transport); t != nil && t.Caps.SameNetns {
		return sender
	}
	return receiver
}

// privileged is the part of the policy that lets functions have privileges.
func privileged(m *chain.Bench) string {
	if m.Privileged {
		return ", privileged: true"
	}
	return ""
}

// more is what a function has beside name, runtime and ports. Polling programs
// get a CPU of their own, where there are two: DPDK pins its threads in any case,
// and would pin those of both functions to the first.
func more(m *chain.Bench, inv *inventory.Inventory, c record.Config) string {
	s := ""
	if c.Runtime == string(chain.RuntimeDocker) {
		s += fmt.Sprintf(", image: %q", m.Image)
	}
	if c.Face != string(chain.FaceNetdev) && len(inv.Host.CPUs) > 1 {
		s += ", cpus: 1"
	}
	return s
}
