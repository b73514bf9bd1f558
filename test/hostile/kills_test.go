// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/leftover"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/test/testenv"
)

// attackKills kills every party but the switches with SIGKILL at random moments under traffic. Each
// time the party must be back, and packets must pass; in the end nothing may have
// leaked. The supervisor counts on the operator: down and up start another.
func attackKills(s *session) {
	links, watched := 6, 3
	if s.brief {
		links, watched = 1, 1
	}
	k := &killer{session: s, end: time.Now().Add(s.time)}
	k.native(links)
	for i := range watched {
		k.supervisor(fmt.Sprintf("hostile-watch%d", i))
	}
	k.finish()
}

// killer has one thread for each victim.
type killer struct {
	*session
	end   time.Time
	wg    sync.WaitGroup
	mu    sync.Mutex // guards the session's counts and random numbers
	leaks []func()   // to be called when all kills are over
}

// each kills until the time is over, but once in any case. kill returns once the
// victim is back.
func (k *killer) each(party string, longest time.Duration, kill func()) {
	k.mu.Lock()
	rng := rand.New(rand.NewPCG(k.rng.Uint64(), 0))
	k.mu.Unlock()
	k.wg.Add(1)
	go func() {
		defer k.wg.Done()
		for first := true; first || time.Now().Before(k.end) && !k.hopeless(); first = false {
			if !first {
				time.Sleep(time.Duration(rng.Int64N(int64(longest))))
			}
			kill()
			k.mu.Lock()
			k.result.Attempts++
			k.count(party, 1)
			k.mu.Unlock()
		}
	}()
}

// finish waits until all kills are over, and then looks for leaks.
func (k *killer) finish() {
	k.wg.Wait()
	for _, leaks := range k.leaks {
		leaks()
	}
}

const mostFindings = 10

// hopeless is so much wrong that more kills would say nothing new.
func (k *killer) hopeless() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.result.Findings) >= mostFindings
}

func (k *killer) failed(format string, args ...any) {
	k.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.finding(format, args...)
}

// awaits is until for a thread that is not the test's own.
func (k *killer) awaits(c *scene, what string, holds func() bool) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if holds() {
			return true
		}
	}
	status, _ := c.dray("status", c.name)
	k.failed("not within %v: %s\n%s", patience, what, status)
	return false
}

// kill sends SIGKILL to a process, unless it has just ended.
func (k *killer) kill(p host.ProcessID) bool {
	return p.PID > 0 && p.Signal(syscall.SIGKILL)
}

// native kills both functions of each of n links, and their broker.
func (k *killer) native(n int) {
	c := k.newScene("hostile-kills", attackers(k.T, "port-plain"), func(programs string) string {
		var functions, links strings.Builder
		for i := range n {
			for _, side := range []string{"a", "b"} {
				fmt.Fprintf(&functions, "  - {name: %s%d, runtime: runc, restart: always, command: [%s/attack-victim, \"-\", p0], ports: [{name: p0, face: native}]}\n", side, i, programs)
			}
			fmt.Fprintf(&links, "  - {name: l%[1]d, ends: [a%[1]d.p0, b%[1]d.p0], transport: shm}\n", i)
		}
		return "apiVersion: drayage/v1\nkind: Chain\nname: hostile-kills\nfunctions:\n" + functions.String() + "links:\n" + links.String()
	})
	for i := range n {
		c.passes(fmt.Sprintf("l%d", i))
	}
	k.watchLeaks(c, "broker", c.broker)
	for i := range n {
		link := fmt.Sprintf("l%d", i)
		for _, side := range []string{"a", "b"} {
			function := fmt.Sprintf("%s%d", side, i)
			k.each("function "+side, 2*time.Second, func() { k.killFunction(c, link, function) })
		}
	}
	k.each("broker", time.Second, func() { k.killBroker(c) })
}

// killFunction waits until packets pass in both directions again. The other end or
// the broker may be dead as well.
func (k *killer) killFunction(c *scene, link, function string) {
	if !k.awaits(c, function+" runs", func() bool { return c.functions()[function].Phase == node.PhaseRunning }) {
		return
	}
	victim := c.functions()[function].Process
	k.kill(victim)
	if !k.awaits(c, function+" runs again", func() bool {
		f := c.functions()[function]
		return f.Phase == node.PhaseRunning && f.Process != victim
	}) {
		return
	}
	before := c.links()[link]
	k.awaits(c, "packets pass over "+link+" after "+function+" was killed", func() bool {
		now := c.links()[link]
		if len(before.Ends) != 2 || len(now.Ends) != 2 || now.State != broker.StateActive {
			before = now
			return false
		}
		for i, e := range now.Ends {
			if e.Counters.RxPackets < before.Ends[i].Counters.RxPackets {
				before = now // another instance
			}
			if e.Counters.RxPackets <= before.Ends[i].Counters.RxPackets {
				return false
			}
		}
		return true
	})
}

func (k *killer) killBroker(c *scene) {
	var victim host.ProcessID
	if !k.awaits(c, "a broker runs", func() bool { victim = c.broker(); return k.kill(victim) }) {
		return
	}
	k.awaits(c, "another broker serves", func() bool { return c.broker() != victim && c.links() != nil })
}

// broker is the chain's broker; zero while there is none.
func (c *scene) broker() host.ProcessID {
	var b node.Broker
	text, err := os.ReadFile(filepath.Join(c.state, c.name, "broker.json"))
	if err != nil || decode(string(text), &b) != nil {
		return host.ProcessID{}
	}
	return b.Process
}

func decode(text string, into any) error { return json.Unmarshal([]byte(text), into) }

// watchLeaks compares what a chain has now, all of it up, with what it has in the
// end, and the open files of one of its processes.
func (k *killer) watchLeaks(c *scene, name string, process func() host.ProcessID) {
	files := openFiles(process())
	before := k.kept(c)
	k.leaks = append(k.leaks, func() {
		k.Helper()
		var diff []string
		for end := time.Now().Add(patience); ; time.Sleep(time.Second) {
			if diff = before.Diff(k.kept(c)); len(diff) == 0 || time.Now().After(end) {
				break
			}
		}
		if len(diff) > 0 {
			k.finding("after the kills the chain differs from before: %s", strings.Join(diff, "; "))
		}
		c.until("the "+name+" has as many files open as before", func() bool { return openFiles(process()) <= files+8 })
	})
}

// kept is what a chain has, without its processes, and without files that are being written.
func (k *killer) kept(c *scene) leftover.Snapshot {
	all, err := leftover.Take()
	if err != nil {
		k.Fatal(err)
	}
	return slices.DeleteFunc(all.Containing(filepath.Base(c.state)), func(line string) bool {
		return strings.HasPrefix(line, "process ") || strings.HasSuffix(line, ".new")
	})
}

// supervisor kills the supervisor of a chain of its own. Packets pass without it, and
// the operator's down and up leave nothing of it.
func (k *killer) supervisor(name string) {
	var file string
	c := k.newScene(name, attackers(k.T, "port-plain"), func(programs string) string {
		text := fmt.Sprintf(`apiVersion: drayage/v1
kind: Chain
name: %[2]s
functions:
  - {name: a, runtime: runc, command: [%[1]s/attack-victim, "-", p0], ports: [{name: p0, face: native}]}
  - {name: b, runtime: runc, command: [%[1]s/attack-victim, "-", p0], ports: [{name: p0, face: native}]}
links:
  - {name: ab, ends: [a.p0, b.p0], transport: shm}
`, programs, name)
		file = filepath.Join(k.TempDir(), name+".yaml")
		testenv.Must(k, os.WriteFile(file, []byte(text), 0o600))
		return text
	})
	k.each("supervisor", 300*time.Millisecond, func() { k.killSupervisor(c, file) })
}

func (k *killer) killSupervisor(c *scene, file string) {
	passing := func(what string) bool {
		before := c.received("ab", "b")
		return k.awaits(c, what, func() bool { return c.received("ab", "b") > before })
	}
	if !passing("packets pass") {
		return
	}
	before := maps.Clone(c.functions())
	var status node.Status
	text, err := os.ReadFile(filepath.Join(c.state, c.name, "status.json"))
	if err != nil || decode(string(text), &status) != nil || !k.kill(status.Supervisor) {
		k.failed("there is no supervisor to kill: %v", err)
		return
	}
	if !passing("packets pass without the supervisor") {
		return
	}
	for name, f := range before {
		if !f.Process.Alive() {
			k.failed("function %s ended with its supervisor", name)
		}
	}
	if out, code := c.dray("down", c.name); code != 0 {
		k.failed("dray down without a supervisor: %d: %s", code, out)
		return
	}
	if !k.awaits(c, "down leaves nothing", func() bool { return len(k.kept(c).Containing("/"+c.name)) == 0 }) {
		return
	}
	if out, code := c.dray("up", file); code != 0 {
		k.failed("dray up: %d: %s", code, out)
	}
}
