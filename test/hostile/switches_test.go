// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/test/testenv"
)

// attackSwitches kills the processes of switches: of every fourth link Open vSwitch's,
// of the others testpmd. Packets must pass again each time.
func attackSwitches(s *session) {
	k := &killer{session: s, end: time.Now().Add(s.time)}
	k.switches(switchesToKill(s))
	k.finish()
}

// switchesToKill is how many links lose their switches: DRAY_TEST_HOSTILE_SWITCHES, or
// four. A switch that ends again and again comes back only every 10 s.
func switchesToKill(s *session) int {
	n := 4
	if text := os.Getenv("DRAY_TEST_HOSTILE_SWITCHES"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil || n < 1 {
			s.Fatalf("DRAY_TEST_HOSTILE_SWITCHES is %q: want a number from 1", text)
		}
	}
	return n
}

// switches kills the switches of n links.
func (k *killer) switches(n int) {
	k.Setenv("DRAY_LIB", filepath.Dir(testenv.Built(k, "librte_net_dray.so")))
	c := k.newScene("hostile-switch", []string{testenv.Built(k, "draygen-dpdk")}, func(programs string) string {
		var functions, links strings.Builder
		for i := range n {
			for side, role := range map[string]string{"a": "send --rate 1kpps --catch-up 100ms", "b": "sink"} {
				fmt.Fprintf(&functions, `
  - {name: %s%d, runtime: runc, memory: 512Mi, restart: always, ports: [{name: p0, face: dpdk}],
     command: [sh, -c, 'exec %s/draygen-dpdk %s --port dpdk:0 --eal "$DRAY_EAL" --interval 500ms --peer-timeout 120s']}`, side, i, programs, role)
			}
			by := "vhost-user"
			if i%4 == 3 {
				by = "ovs-dpdk"
			}
			fmt.Fprintf(&links, "\n  - {name: l%[1]d, ends: [a%[1]d.p0, b%[1]d.p0], transport: %[2]s}", i, by)
		}
		return "apiVersion: drayage/v1\nkind: Chain\nname: hostile-switch\nfunctions:" + functions.String() + "\nlinks:" + links.String() + "\n"
	})
	kill := func(i int) { k.killSwitch(c, fmt.Sprintf("l%d", i), fmt.Sprintf("b%d", i)) }
	for i := range n {
		kill(i) // once, for the files that a restart adds
	}
	k.watchLeaks(c, "supervisor", c.supervisor)
	for i := range n {
		k.each("switch", time.Second, func() { kill(i) })
	}
}

// killSwitch kills one of the processes that carry a link.
func (k *killer) killSwitch(c *scene, link, sink string) {
	var victims []transport.Process
	if !k.awaits(c, "the switch of "+link+" runs", func() bool {
		victims = c.switchOf(link)
		if len(victims) == 0 {
			return false
		}
		victim := victims[rand.IntN(len(victims))]
		if !k.kill(victim.ID) {
			return false
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.count(victim.Name, 1)
		return true
	}) {
		return
	}
	var since int64
	k.awaits(c, "packets pass over "+link+" again", func() bool {
		if since == 0 && !slices.Equal(ids(c.switchOf(link)), ids(victims)) {
			since = monotonic()
		}
		return since > 0 && c.sinks(sink, since)
	})
}

func ids(processes []transport.Process) (all []host.ProcessID) {
	for _, p := range processes {
		all = append(all, p.ID)
	}
	return all
}

// switchOf are the processes that carry a link now.
func (c *scene) switchOf(link string) []transport.Process {
	revivals := map[string]node.Revival{}
	if text, err := os.ReadFile(filepath.Join(c.state, c.name, "processes.json")); err == nil && decode(string(text), &revivals) == nil {
		if r, ok := revivals[link]; ok {
			return r.Processes
		}
	}
	var state struct {
		Reports map[string]struct{ Processes []transport.Process }
	}
	text, err := os.ReadFile(filepath.Join(c.state, c.name, "state.json"))
	if err != nil || decode(string(text), &state) != nil {
		return nil
	}
	return state.Reports[link].Processes
}

// sinks reports whether a sink has received packets in an interval that began after
// some time of the monotonic clock.
func (c *scene) sinks(function string, since int64) bool {
	lines := strings.Split(c.log(function), "\n")
	for _, line := range slices.Backward(lines) {
		var seen struct {
			From     int64 `json:"from_ns"`
			Received int
		}
		if decode(line, &seen) != nil {
			continue
		}
		if seen.From <= since {
			return false
		}
		if seen.Received > 0 {
			return true
		}
	}
	return false
}

func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // never fails for this clock
	return now.Nano()
}
