// SPDX-License-Identifier: Apache-2.0

package published

import (
	"fmt"
	"strings"
	"time"

	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Functions of a pool's chain, and the port and address of its store.
const (
	balancer, store = "lb", "redis"
	storePort       = "store"
	storeAddress    = "10.99.0.1"
	vnfProgram      = "dray-vnf"
	storeProgram    = "redis-server"
)

const (
	poolFlows = 256    // each is a session
	poolRate  = 10_000 // packets/s around an event
	// poolTraffic is the length of the traffic around an event: a worker that is added
	// starts EAL meanwhile.
	poolTraffic = 4 * time.Second
	// poolSettled is how long a pool must have its sessions before an event, and has to
	// take them over after it.
	poolSettled = 300 * time.Millisecond
	// poolPatience is how long a pool may take to have its workers, and they their
	// sessions.
	poolPatience = 30 * time.Second
	// poolAnswer is how long the store may take to answer for a session that moved.
	poolAnswer = time.Second
	// poolTick is the interval of the reports of balancer and workers.
	poolTick = 50 * time.Millisecond
)

// poolText is a load balancer, its workers, and a store on a bridge that the workers
// share. A worker that is to be added, and the generator around an event, start with a
// signal. That generator sleeps between packets: it takes no CPU from the others.
//
//	a.p0 === nic.lb.feed1 === feed.w1.store ---+
//	            lb.feed2 === feed.w2.store ----+--- store.redis
func poolText(_ *inventory.Inventory, c experiment.Cell) string {
	var functions, links strings.Builder
	ports, members := "{name: nic, face: dpdk}", []string{store + "." + storePort}
	for i, name := range poolWorkers(c) {
		feed, command := fmt.Sprintf("feed%d", i+1), workerCommand(c)
		if i == c.Workers {
			command = waiting(command)
		}
		ports += fmt.Sprintf(", {name: %s, face: dpdk}", feed)
		own := "{name: feed, face: dpdk}"
		if c.State == "" {
			own += fmt.Sprintf(", {name: %s, ip: 10.99.0.%d/24}", storePort, i+2)
			members = append(members, name+"."+storePort)
		}
		fmt.Fprintf(&functions, "  - {name: %s, runtime: %s, command: [%s], ports: [%s]}\n", name, c.Runtime, command, own)
		fmt.Fprintf(&links, "  - {name: %s, ends: [%s.%s, %s.feed], transport: shm}\n", feed, balancer, feed, name)
	}
	if c.State == "" {
		fmt.Fprintf(&functions, "  - {name: %s, runtime: %s, command: [%s, --bind, %s, --protected-mode, \"no\", --save, \"\"], ports: [{name: %s, ip: %[4]s/24}]}\n",
			store, c.Runtime, storeProgram, storeAddress, storePort)
		fmt.Fprintf(&links, "  - {name: %s, ends: [%s], transport: bridge}\n", storePort, strings.Join(members, ", "))
	}
	return fmt.Sprintf("functions:\n  - {name: %s, runtime: %s%s, ports: [{name: %s, face: native}]}\n", client, c.Runtime, trafficField(c), clientPort) +
		fmt.Sprintf("  - {name: %s, runtime: %s, command: [%s], ports: [%s]}\n", balancer, c.Runtime, vnfCommand("lb, --announced"), ports) + functions.String() +
		fmt.Sprintf("links:\n  - {name: link, ends: [%s.%s, %s.nic], transport: shm}\n", client, clientPort, balancer) + links.String()
}

// trafficField is the generator around an event, as a field of its function.
func trafficField(c experiment.Cell) string {
	if c.Event == "" {
		return ""
	}
	path, err := instrument.FindOwn(generator)
	if err != nil {
		path = generator // the function does not find it either, and says so
	}
	return ", command: [" + waiting(fmt.Sprintf("%q, ping, --port, \"dray:%s\", --flows, \"%d\", --size, \"%d\", --rate, %dpps, --duration, %v, --catch-up, 100ms, --peer-timeout, %v",
		path, clientPort, poolFlows, echoFrame, poolRate, poolTraffic, poolPatience)) + "]"
}

// poolWorkers are the names of a pool's workers; the last may be added later.
func poolWorkers(c experiment.Cell) (names []string) {
	n := c.Workers
	if c.Event == experiment.EventAdd {
		n++
	}
	for i := range n {
		names = append(names, fmt.Sprintf("w%d", i+1))
	}
	return names
}

func workerCommand(c experiment.Cell) string {
	if c.State == experiment.StateWorker {
		return vnfCommand("session")
	}
	return vnfCommand(fmt.Sprintf("session, --redis, %q", storeAddress+":6379"))
}

// vnfCommand runs a mode of the VNF program. There may be more functions than CPUs, so an
// idle one sleeps.
func vnfCommand(mode string) string {
	path, err := instrument.FindOwn(vnfProgram)
	if err != nil {
		path = vnfProgram // the function does not find it either, and says so
	}
	return fmt.Sprintf("%q, $(DRAY_EAL), --, %s, --sleep, 50us, --interval, %v", path, mode, poolTick)
}

// poolTime is roughly how long a trial takes.
func poolTime(c experiment.Cell, trial time.Duration) time.Duration {
	if c.Event != "" {
		trial = poolTraffic
	}
	return overhead + time.Second + trial
}
