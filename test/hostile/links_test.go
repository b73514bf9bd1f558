// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/test/testenv"
)

// thirdParty is a kind of link whose driver or switch is not Drayage's, with the hostile
// function at one end.
type thirdParty struct {
	name     string
	attacker string
	link     string // of the chain file: ends and transport
	victim   string // whose ends are counted: a function, or "" for the switch
}

var thirdParties = []thirdParty{
	{"memif server", "memif", "ends: [victim.p0, hostile.p0], transport: memif", "victim"},
	{"memif client", "memif", "ends: [hostile.p0, victim.p0], transport: memif", "victim"},
	{"testpmd", "vhost", "ends: [hostile.p0, victim.p0], transport: vhost-user", ""},
	{"ovs-vswitchd", "vhost", "ends: [hostile.p0, victim.p0], transport: ovs-dpdk", ""},
}

// attackLinks attacks DPDK's and Open vSwitch's code on links that are not Drayage's own:
// it may end or hang, again and again. Nothing else may notice, and each time it must be
// back.
func attackLinks(s *session) {
	kinds := thirdParties
	if s.brief {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		before := s.result.Attempts
		s.attackLink(kind, s.time/time.Duration(len(kinds)))
		s.count(kind.name+" attempts", s.result.Attempts-before)
	}
}

// Files that begin and end an attack by their existence. Before and after it, an honest
// application is in the attacker's place.
const (
	begin  = "begin"
	enough = "enough"
)

// beside is the chain of such a link, and of two honest ones.
// All honest links are shared memory: feeder sends to the victim, and two neighbours check
// each other's packets.
//
//	hostile ── bad ── victim ── good ── feeder        left ── own ── right
func beside(programs string, kind thirdParty) string {
	return fmt.Sprintf(`apiVersion: drayage/v1
kind: Chain
name: hostile-links
functions:
  - name: hostile
    runtime: runc
    memory: 512Mi
    pids: 200
    restart: always
    command: [sh, -c, 'honest() { exec %[1]s/draygen-dpdk sink --port dpdk:0 --eal "$DRAY_EAL" --interval 200ms; };
      [ -e %[1]s/%[5]s ] || { honest & until [ -e %[1]s/%[5]s ]; do sleep 0.1; done; kill -9 $!; };
      until [ -e %[1]s/%[4]s ]; do %[1]s/attack-%[3]s p0 4 $(date +%%s%%N); done; honest']
    ports: [{name: p0, face: dpdk}]
  - name: victim
    runtime: runc
    memory: 512Mi
    restart: always
    command: [%[1]s/dray-vnf, $(DRAY_EAL), --, l2fwd, --yield]
    ports: [{name: p0, face: dpdk}, {name: p1, face: dpdk}]
  - name: feeder
    runtime: runc
    restart: always
    command: [%[1]s/draygen, send, --port, "dray:p0", --rate, 1kpps, --catch-up, 100ms, --peer-timeout, 120s]
    ports: [{name: p0, face: native}]
  - {name: left, runtime: runc, command: [%[1]s/attack-victim, "-", p0], ports: [{name: p0, face: native}]}
  - {name: right, runtime: runc, command: [%[1]s/attack-victim, "-", p0], ports: [{name: p0, face: native}]}
links:
  - {name: bad, %[2]s}
  - {name: good, ends: [victim.p1, feeder.p0], transport: shm}
  - {name: own, ends: [left.p0, right.p0], transport: shm}
`, programs, kind.link, kind.attacker, enough, begin)
}

func (s *session) attackLink(kind thirdParty, d time.Duration) {
	s.Helper()
	s.Setenv("DRAY_LIB", filepath.Dir(testenv.Built(s, "librte_net_dray.so")))
	programs := append(attackers(s.T, "port-plain"), testenv.Built(s, "dray-vnf"), testenv.Built(s, "draygen"), testenv.Built(s, "draygen-dpdk"),
		testenv.BuiltBy(s, "attackers", "out", "port-plain", "tests", "attack", "attack-"+kind.attacker))
	c := s.newScene("hostile-links", programs, func(programs string) string { return beside(programs, kind) })
	c.Logf("%s: %s", kind.name, c.engine("bad"))
	c.passes("own")
	before, supervisor, broker := c.functions(), c.supervisor(), c.broker()
	files, theirs := c.brokerFiles(), openFiles(supervisor)
	c.create(begin)
	c.until("the attack has begun", func() bool { return c.reported("hostile").Attempts > 0 })
	time.Sleep(d)
	did := c.reported("hostile")
	c.result.Attempts += did.Attempts
	c.count("lives", did.Lives)
	c.count("joined", did.Joined)
	c.unharmed(before, "left", "right")
	if c.supervisor() != supervisor || c.broker() != broker {
		c.finding("the supervisor or the broker has ended")
	}
	c.back(kind)
	c.passes("own")
	for _, function := range []string{"left", "right"} {
		seen := c.counts(function)
		if seen["breaks"] > 0 {
			c.finding("%d packets of its neighbour did not reach %s in order", seen["breaks"], function)
		}
		c.count("neighbours' packets", seen["received"])
	}
	if size := c.stateSize(); size > mostState {
		c.finding("the chain's files take %d MiB on the host", size>>20)
	}
	c.until("broker and supervisor have as many files open as before", func() bool {
		return c.brokerFiles() <= files+8 && openFiles(supervisor) <= theirs+8
	})
	c.leavesRootItsShare()
	c.unharmed(before, "left", "right")
}

// create makes a file that the functions see.
func (c *scene) create(file string) {
	c.Helper()
	testenv.Must(c, os.WriteFile(filepath.Join(c.programs, file), nil, 0o644))
}

// done is what an attacker has done.
type done struct{ Attempts, Lives, Joined uint64 }

// reported is what the attacker of a function has reported in its log, over all its
// instances.
func (c *scene) reported(function string) (all done) {
	var last done
	add := func() { all = done{all.Attempts + last.Attempts, all.Lives + last.Lives, all.Joined + last.Joined} }
	for _, line := range strings.Split(c.log(function), "\n") {
		var now done
		if decode(line, &now) != nil {
			continue
		}
		if now.Attempts < last.Attempts {
			add() // another instance
		}
		last = now
	}
	add()
	return all
}

// back replaces the attacker by an honest application, and waits until packets pass over both
// links of the victim. It counts what has ended.
func (c *scene) back(kind thirdParty) {
	c.Helper()
	c.create(enough)
	c.until("the switch and the victim run, and packets pass the victim's links", func() bool {
		before, since := c.received("good", "victim"), monotonic()
		time.Sleep(time.Second)
		return c.functions()["victim"].Phase == node.PhaseRunning && alive(c.switchOf("bad")) &&
			c.received("good", "victim") > before+100 && c.sinks("hostile", since)
	})
	ends := c.functions()["victim"].Restarts
	c.count("victim's ends", uint64(ends))
	if kind.victim == "" {
		ends = c.switchRestarts("bad")
	}
	c.count(kind.name+" ends", uint64(ends))
	for _, p := range c.switchOf("bad") {
		text, err := os.ReadFile(p.Log)
		testenv.Must(c, err)
		c.count(kind.name+" hangs", uint64(strings.Count(string(text), "its polling threads have slept")))
	}
}

// mostState is what a chain may take in the state directory, in bytes: mostly logs.
const mostState = 128 << 20

// stateSize is how much the chain's files take, in bytes.
func (c *scene) stateSize() (size int64) {
	c.Helper()
	testenv.Must(c, filepath.WalkDir(filepath.Join(c.state, c.name, "link"), func(_ string, d fs.DirEntry, err error) error {
		if info, infoErr := d.Info(); err == nil && infoErr == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil // some end at any time
	}))
	return size
}

func alive(processes []transport.Process) bool {
	for _, p := range processes {
		if !p.ID.Alive() {
			return false
		}
	}
	return true
}

// engine is what carries a link, with its version.
func (c *scene) engine(link string) string {
	var state struct {
		Reports map[string]struct{ Engine string }
	}
	text, err := os.ReadFile(filepath.Join(c.state, c.name, "state.json"))
	testenv.Must(c, err)
	testenv.Must(c, decode(string(text), &state))
	return state.Reports[link].Engine
}

// supervisor is the process that watches the chain.
func (c *scene) supervisor() host.ProcessID {
	var status node.Status
	text, err := os.ReadFile(filepath.Join(c.state, c.name, "status.json"))
	testenv.Must(c, err)
	testenv.Must(c, decode(string(text), &status))
	return status.Supervisor
}

// switchRestarts is how often the switch of a link has been started again.
func (c *scene) switchRestarts(link string) int {
	revivals := map[string]node.Revival{}
	text, err := os.ReadFile(filepath.Join(c.state, c.name, "processes.json"))
	if err != nil || decode(string(text), &revivals) != nil {
		return 0
	}
	return revivals[link].Restarts
}
