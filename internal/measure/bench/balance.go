// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/matrix"
)

// workerPort is the only port of a worker.
const workerPort = "feed"

// balancedFlows are spread over the workers.
const balancedFlows = 256

// balanced are a load balancer's functions and links. Its first port, instead of a NIC
// port, has a link to the generator, which sends and receives there. Each worker is a
// function with one port, and returns each packet through it.
//
//	a.p0 --- q0.vnf.q1 --- feed.w1
//	            vnf.q2 --- feed.w2
//
// Idle functions yield the CPU: there may be more of them than CPUs.
func (f fields) balanced(workers int) (functions, links []string, err error) {
	in := chain.RuntimeName(f.config.Runtime)
	balancer, err := programCommand("lb", in, f.mtu, ", --yield, --interval, 100ms") // for workersUp
	if err != nil {
		return nil, nil, err
	}
	worker, err := programCommand("l2fwd", in, f.mtu, ", --yield, --next-hop, 0="+senderMAC)
	if err != nil {
		return nil, nil, err
	}
	ports := []string{f.port(inPort, inMAC)}
	links = []string{f.link(linkName, through+"."+inPort, sender+"."+senderPort)}
	functions = []string{f.function(sender, "", f.port(senderPort, senderMAC)), ""}
	for i := 1; i <= workers; i++ {
		name, port := fmt.Sprintf("w%d", i), fmt.Sprintf("q%d", i)
		ports = append(ports, f.port(port, ""))
		functions = append(functions, f.function(name, worker, f.port(workerPort, "")))
		// A link's first end may be a socket's server; it starts before its workers.
		links = append(links, f.link(fmt.Sprintf("feed%d", i), through+"."+port, name+"."+workerPort))
	}
	functions[1] = f.function(through, balancer, ports...)
	return functions, links, nil
}

// workersUp reports whether a load balancer's last complete log line has all workers
// up.
func workersUp(log string) bool {
	lines := strings.Split(log, "\n")
	if len(lines) < 2 {
		return false
	}
	last := lines[len(lines)-2]
	return strings.Contains(last, `"workers":[`) && !strings.Contains(last, `"up":false`)
}

// readiness tests a VNF's log before anything is sent to the VNF. No fixed time would do:
// next to busy programs, EAL may take seconds to start.
func (s *setup) readiness() func(log string) bool {
	if matrix.VNF(s.visit.config.VNF).Workers() > 0 {
		return workersUp
	}
	return portsUp
}

// crowded reports whether a configuration has more polling functions than the
// host has CPUs: then none has its own.
func crowded(inv *inventory.Inventory, c record.Config) bool {
	const others = 2 // generator and load balancer
	workers := matrix.VNF(c.VNF).Workers()
	return workers > 0 && workers+others > len(inv.Host.CPUs)
}

// around is the generator's encapsulation. A load balancer gets plain packets of many flows.
func around(c record.Config) *instrument.Encapsulation {
	if matrix.VNF(c.VNF).Workers() > 0 {
		return &instrument.Encapsulation{Users: balancedFlows}
	}
	return tunnels[matrix.VNF(c.VNF)].around
}
