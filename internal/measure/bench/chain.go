// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/matrix"
	"github.com/drayage/dray/internal/spec/parse"
)

// Names in a configuration's chain.
const (
	sender, receiver, through = "a", "b", "vnf"
	senderPort, sinkPort      = "p0", "p1"
	inPort, outPort           = "q0", "q1" // of the VNF
	linkName, backName        = "link", "back"
)

// MAC addresses of a chain with a VNF, which must know the addresses beyond its
// ports.
const senderMAC, sinkMAC, inMAC, outMAC = "02:64:72:61:79:a0", "02:64:72:61:79:a1", "02:64:72:61:79:f0", "02:64:72:61:79:f1"

const defaultMTU, frameExtra = 1500, 18 // Ethernet header and FCS

// shape is the topology of a configuration's chain.
type shape int

const (
	pair  shape = iota // sender and receiver in two functions
	alone              // both in one function, by two programs or threads
	loop               // both ports in one function, by one thread
	vnf                // the same, with a function between
)

// TakeTurns reports whether two polling ends must share one CPU: next to the
// transport's switches, which poll too, there is none for each. A tunnel has a switch
// on both hosts.
func TakeTurns(inv *inventory.Inventory, transport string) bool {
	const ends = 2 // sender and receiver
	t := inv.Transport(transport)
	if t == nil || t.Caps.BusyCPUs == 0 {
		return false
	}
	switches := t.Caps.BusyCPUs
	if t.Caps.Tunnel {
		switches *= ends
	}
	return len(inv.Host.CPUs) < ends+switches
}

// shapeOf chooses the shape. One thread is both sender and receiver in virtual
// machines, and if a polling switch leaves too few CPUs.
func shapeOf(inv *inventory.Inventory, c record.Config) shape {
	t := inv.Transport(c.Transport)
	switch {
	case c.VNF != string(matrix.VNFDirect):
		return vnf
	case t != nil && t.Caps.SameNetns:
		return alone
	case inMachine(c):
		return loop
	case c.Face != string(chain.FaceNetdev) && TakeTurns(inv, c.Transport):
		return loop
	}
	return pair
}

// chainName names a configuration's chain: the same in every run, so that the
// next run of it removes the remains of a killed one.
func chainName(c record.Config) string {
	sum := sha256.Sum256([]byte(c.String()))
	return "bench-" + hex.EncodeToString(sum[:4])
}

// prepare returns a configuration's chain, with its text and its plan.
func prepare(m *matrix.Matrix, inv *inventory.Inventory, c record.Config) (*chain.Chain, []byte, *plan.Plan, error) {
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

// chainText is a configuration's chain file.
func chainText(m *matrix.Matrix, inv *inventory.Inventory, c record.Config) ([]byte, error) {
	var size matrix.FrameSize
	if err := size.UnmarshalText([]byte(c.Size)); err != nil {
		return nil, err
	}
	f := fields{config: c, mtu: max(defaultMTU, size.Largest()-frameExtra+tunnels[matrix.VNF(c.VNF)].grows), more: more(m, inv, c), slice: trusting(inv, c)}
	f.forwarding, f.noHzFull = m.Forwarding, m.NoHzFull
	functions := []string{f.function(sender, "", f.port(senderPort, ""), f.port(sinkPort, ""))}
	links := []string{f.link(linkName, sender+"."+senderPort, sender+"."+sinkPort)}
	switch shapeOf(inv, c) {
	case pair:
		functions = []string{f.function(sender, "", f.port(senderPort, "")), f.function(receiver, "", f.port(sinkPort, ""))}
		links = []string{f.link(linkName, sender+"."+senderPort, receiver+"."+sinkPort)}
	case vnf:
		if workers := matrix.VNF(c.VNF).Workers(); workers > 0 {
			var err error
			if functions, links, err = f.balanced(workers); err != nil {
				return nil, err
			}
			break
		}
		command, err := vnfCommand(matrix.VNF(c.VNF), chain.RuntimeName(c.Runtime), f.mtu)
		if err != nil {
			return nil, err
		}
		functions = []string{
			f.generator(f.port(senderPort, senderMAC), f.port(sinkPort, sinkMAC)),
			f.function(through, command, f.port(inPort, inMAC), f.port(outPort, outMAC)),
		}
		links = []string{
			// The first end of a link may be a socket's server, and the VNF must not wait for it.
			f.link(linkName, through+"."+inPort, sender+"."+senderPort), f.link(backName, through+"."+outPort, sender+"."+sinkPort),
		}
	}
	return []byte(fmt.Sprintf("apiVersion: %s\nkind: %s\nname: %s\npolicy: {on_infeasible: warn%s}\nfunctions:\n%slinks:\n%s",
		parse.APIVersion, chain.Kind, chainName(c), privileged(m), strings.Join(functions, ""), strings.Join(links, ""))), nil
}

// fields write parts of a chain file.
type fields struct {
	config record.Config
	mtu    int
	more   string // of every function
	slice  bool   // the ends of a link trust each other
	// forwarding applies to every link; empty: the transport's default.
	forwarding chain.Forwarding
	noHzFull   bool // of the functions in virtual machines
}

func (f fields) port(name, mac string) string {
	if mac != "" {
		mac = fmt.Sprintf(", mac: %q", mac)
	}
	return fmt.Sprintf("{name: %s, face: %s, mtu: %d%s}", name, f.config.Face, f.mtu, mac)
}

func (f fields) function(name, command string, ports ...string) string {
	if command != "" {
		command = ", command: " + command
	}
	machine := ""
	if f.noHzFull && f.config.Runtime == string(chain.RuntimeVM) {
		machine = ", vm: {nohz_full: true}"
	}
	return fmt.Sprintf("  - {name: %s, runtime: %s%s%s%s, ports: [%s]}\n", name, f.config.Runtime, f.more, machine, command, strings.Join(ports, ", "))
}

// generator is the sender's and receiver's function around a VNF.
func (f fields) generator(ports ...string) string {
	f.config.Runtime = string(generatorRuntime(f.config))
	return f.function(sender, "", ports...)
}

func (f fields) link(name, from, to string) string {
	isolation := ""
	if f.slice {
		isolation = fmt.Sprintf(", isolation: %s", chain.IsolationSlice)
	}
	forwarding := ""
	if f.forwarding != "" {
		forwarding = fmt.Sprintf(", forwarding: %s", f.forwarding)
	}
	return fmt.Sprintf("  - {name: %s, ends: [%s, %s], transport: %s%s%s}\n", name, from, to, f.config.Transport, isolation, forwarding)
}

// trusting reports whether the transport requires ends that trust each other.
func trusting(inv *inventory.Inventory, c record.Config) bool {
	t := inv.Transport(c.Transport)
	return t != nil && t.Caps.Isolation == string(chain.IsolationSlice)
}

// defaultHugePages is a function's share of the free pages, if its transport sets
// none and the matrix names none.
const defaultHugePages = "{2Mi: 64Mi}"

// privileged is the part of the policy that permits privileged functions.
func privileged(m *matrix.Matrix) string {
	if m.Privileged {
		return ", privileged: true"
	}
	return ""
}

// more is a function's fields other than name, runtime and ports. Polling
// programs get their own CPU if there are two: DPDK always pins its threads, and
// would pin both functions' threads to the first.
func more(m *matrix.Matrix, inv *inventory.Inventory, c record.Config) string {
	s := ""
	if c.Runtime == string(chain.RuntimeDocker) {
		s += fmt.Sprintf(", image: %q", m.Image)
	}
	if c.Face == string(chain.FaceDPDK) && len(m.HugePages) > 0 {
		var limits []string
		for _, h := range m.HugePages {
			limits = append(limits, fmt.Sprintf("%v: %v", h.Size, h.Limit))
		}
		s += ", hugepages: {" + strings.Join(limits, ", ") + "}"
	} else if t := inv.Transport(c.Transport); t != nil && t.Caps.HugePages {
		s += ", hugepages: " + defaultHugePages
	}
	if c.Face != string(chain.FaceNetdev) && len(inv.Host.CPUs) > 1 && !crowded(inv, c) {
		s += ", cpus: 1"
	}
	return s
}

// vnfProgram is the program of the VNFs.
const vnfProgram = "dray-vnf"

// vnfCommand is the command of the function between the generator's ports, as a
// chain file list.
func vnfCommand(mode matrix.VNF, in chain.RuntimeName, mtu int) (string, error) {
	options := map[matrix.VNF]string{
		"none":  "",
		"l2fwd": fmt.Sprintf(", --next-hop, 0=%s, --next-hop, 1=%s", senderMAC, sinkMAC),
		"l3fwd": fmt.Sprintf(", --generate, %q, --seed, %q, --default-route, %q, --next-hop, 0=%s, --next-hop, 1=%s", "1000", "1", "1", senderMAC, sinkMAC),
		"bng":   bngOptions(),
		"gtpu":  gtpuOptions(),
	}
	more, ok := options[mode]
	if !ok {
		return "", fmt.Errorf("%s has no VNF %s", vnfProgram, mode)
	}
	return programCommand(mode, in, mtu, more)
}

// programCommand runs the VNF program in a mode, with more options as list items.
func programCommand(mode matrix.VNF, in chain.RuntimeName, mtu int, more string) (string, error) {
	path, err := instrument.FindOwn(vnfProgram)
	if in == chain.RuntimeDocker {
		path, err = vnfProgram, nil // the image's own
	}
	if err != nil {
		return "", err
	}
	if hidden := runtime.Hidden(path); in == chain.RuntimeRunc && hidden != "" {
		return "", fmt.Errorf("containers cannot see this host's %s, which holds %s: `make install`, or build it elsewhere", hidden, vnfProgram)
	}
	return fmt.Sprintf(`[%q, $(DRAY_EAL), "--", %s, --mtu, "%d"%s]`, path, mode, mtu, more), nil
}
