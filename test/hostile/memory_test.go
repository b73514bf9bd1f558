// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/test/testenv"
)

// joined is the chain of most classes: a hostile function, its victim, and an honest
// neighbour of the victim. Victim and neighbour check every packet of each other.
//
//	hostile ── bad ── victim ── good ── honest
func joined(name, programs, link string) string {
	return fmt.Sprintf(`apiVersion: drayage/v1
kind: Chain
name: %[1]s
functions:
  - {name: hostile, runtime: runc, memory: 256Mi, pids: 200, command: [sleep, infinity], ports: [{name: p0, face: native}]}
  - {name: victim, runtime: runc, command: [%[2]s/attack-victim, p0, p1], ports: [{name: p0, face: native}, {name: p1, face: native}]}
  - {name: honest, runtime: runc, command: [%[2]s/attack-victim, "-", p0], ports: [{name: p0, face: native}]}
links:
  - {name: bad, ends: [hostile.p0, victim.p0], transport: shm%[3]s}
  - {name: good, ends: [victim.p1, honest.p0], transport: shm%[3]s}
`, name, programs, link)
}

// peers attacks inside the chain `joined` and checks that victim and neighbour notice
// nothing: the same processes run, every packet arrives, none is spoiled.
func (s *session) peers(name, build, link string, attack func(c *scene)) {
	s.Helper()
	c := s.newScene(name, attackers(s.T, build), func(programs string) string { return joined(name, programs, link) })
	c.passes("good")
	before := c.functions()
	attack(c)
	if c.unharmed(before, "victim", "honest"); c.Failed() {
		return
	}
	c.passes("good")
	for _, function := range []string{"victim", "honest"} {
		seen := c.counts(function)
		if seen["breaks"] > 0 {
			c.finding("%d packets of its honest neighbour did not reach %s in order", seen["breaks"], function)
		}
		c.count("honest packets", seen["received"])
		c.count("violations noticed", seen["violations"])
	}
	if most := c.counts("victim")["maps"]; most > 8 {
		c.finding("the victim has %d generations mapped", most)
	}
}

// attackMemory writes to the memory of links whose other ends are libdray, libdray
// with AddressSanitizer, libdray on huge pages, and net_dray.
func attackMemory(s *session) {
	kinds := []struct {
		name string
		run  func(d time.Duration)
	}{
		{"plain", func(d time.Duration) { s.attackLibdray("hostile-memory", "port-plain", d) }},
		{"sanitized", func(d time.Duration) { s.attackLibdray("hostile-asan", "port-asan", d) }},
		{"huge", s.attackHuge},
		{"net_dray", func(d time.Duration) { s.attackDriver("hostile-driver", "bin", "bin", d) }},
		{"net_dray, sanitized", func(d time.Duration) {
			s.attackDriver("hostile-driver-asan", "out/vnf-asan", "out/pmd-asan", d)
		}},
	}
	for _, kind := range kinds {
		before := s.result.Attempts
		kind.run(s.time / time.Duration(len(kinds)))
		s.count(kind.name, s.result.Attempts-before)
	}
}

func (s *session) attackLibdray(name, build string, d time.Duration) {
	s.peers(name, build, "", func(c *scene) { c.attack("hostile", "memory", "p0", d) })
}

// attackHuge is attackLibdray on links of huge pages, which also have buffers for
// messages.
func (s *session) attackHuge(d time.Duration) {
	testenv.HugePages(s, 96)
	s.peers("hostile-huge", "port-plain", ", messages: {size: 256Ki, count: 8}", func(c *scene) {
		for _, link := range []string{"bad", "good"} {
			c.moveToHugePages(link)
		}
		c.until("a link is on huge pages", func() bool { return c.links()["good"].Pages == "huge 2M" })
		c.passes("good")
		c.attack("hostile", "memory", "p0", d)
	})
}

// moveToHugePages has the broker move a link as its journal describes it: chain files
// have no word for pages.
func (c *scene) moveToHugePages(link string) {
	c.Helper()
	directory := filepath.Join(c.state, c.name, "broker")
	var entry struct{ Link broker.Link }
	text, err := os.ReadFile(filepath.Join(directory, "links", "link-"+link+".json"))
	testenv.Must(c, err)
	testenv.Must(c, decode(string(text), &entry))
	entry.Link.Pages = broker.PagesHuge
	client, err := broker.Dial(directory)
	testenv.Must(c, err)
	testenv.Must(c, client.Relink(context.Background(), entry.Link))
}

// driven is a chain whose victim is dray-vnf on ports of net_dray:
//
//	hostile ── bad ── victim ── good ── honest
func driven(name, programs, env string) string {
	return fmt.Sprintf(`apiVersion: drayage/v1
kind: Chain
name: %[1]s
functions:
  - {name: hostile, runtime: runc, memory: 256Mi, command: [sleep, infinity], ports: [{name: p0, face: native}]}
  - name: victim
    runtime: runc
    env: {%[3]s}
    command: [%[2]s/dray-vnf, $(DRAY_EAL), --, l2fwd, --yield]
    ports: [{name: p0, face: dpdk}, {name: p1, face: dpdk}]
  - {name: honest, runtime: runc, command: [%[2]s/draygen, sink, --port, "dray:p0", --check, --interval, 200ms], ports: [{name: p0, face: native}]}
links:
  - {name: bad, ends: [hostile.p0, victim.p0], transport: shm}
  - {name: good, ends: [victim.p1, honest.p0], transport: shm}
`, name, programs, env)
}

// attackDriver attacks dray-vnf; then an honest sender takes the attacker's place.
func (s *session) attackDriver(name, vnf, driver string, d time.Duration) {
	vnf = testenv.BuiltBy(s, "attackers", vnf, "dray-vnf")
	s.Setenv("DRAY_LIB", filepath.Dir(testenv.BuiltBy(s, "attackers", driver, "librte_net_dray.so")))
	env := `ASAN_OPTIONS: "detect_leaks=0:exitcode=99", UBSAN_OPTIONS: "print_stacktrace=1:halt_on_error=1"`
	programs := append(attackers(s.T, "port-plain"), vnf, testenv.Built(s, "draygen"))
	c := s.newScene(name, programs, func(programs string) string { return driven(name, programs, env) })
	c.until("both links are up", func() bool {
		return c.links()["good"].State == broker.StateActive && c.functions()["victim"].Process.PID > 0
	})
	before := c.functions()
	c.attack("hostile", "memory", "p0", d)
	c.unharmed(before, "victim", "honest")
	const packets = 2000 // a full neighbour drops some, so they may have to be sent twice
	passed := c.received("good", "honest")
	c.until(fmt.Sprintf("%d packets pass after the attack", packets), func() bool {
		out, code := c.dray("exec", name, "hostile", "--", filepath.Join(c.programs, "draygen"), "send", "--port", "dray:p0",
			"--packets", fmt.Sprint(packets), "--rate", "20kpps", "--catch-up", "60s", "--check")
		if code != 0 {
			c.finding("after the attack nothing can be sent: %s", out)
		}
		return code != 0 || c.received("good", "honest") >= passed+packets
	})
	c.unharmed(before, "victim", "honest")
	if text := c.log("victim"); strings.Contains(text, "Sanitizer") || strings.Contains(text, "runtime error") {
		c.finding("a sanitizer reports: %s", tail(text))
	}
}
