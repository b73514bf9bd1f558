// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits for starting a pair's applications, and for runc to remove a container.
const (
	startWithin     = 20 * time.Second
	containerWithin = 5 * time.Second
)

// pair is two applications on a link, each on its own core. Or it is one with
// both ends, and a function in the middle on the other core. All pairs are
// started once and paused; one at a time runs and is measured briefly. So many
// can be measured in turns, and none just after its start.
type pair struct {
	dir                       string
	brokers                   []*process
	sender, receiver, between *process
	container                 bool   // the function in the middle is in one
	size                      int    // testpmd's current frame size
	why                       string // it cannot be measured, or no longer
}

// Sides of a pair: index of the CPU.
const (
	sendSide    = 0
	receiveSide = 1 // or the function in the middle
)

// place holds everything that the pairs share.
type place struct {
	DPDK
	ctx  context.Context
	dir  string
	cpus [2]int
	end  time.Time // nothing begins later
	made int       // pairs so far
}

func (p *place) late() bool { return time.Now().After(p.end) || p.ctx.Err() != nil }

// newPair makes a pair without applications. Its first link is in dir, its second in dir/e.
func (p *place) newPair(links int) *pair {
	t := &pair{dir: filepath.Join(p.dir, strconv.Itoa(p.made))}
	p.made++
	dirs := []string{t.dir, filepath.Join(t.dir, "e")}
	for _, dir := range dirs {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.fail(err.Error())
			return t
		}
	}
	for _, dir := range dirs[:links] {
		b, err := startProcess([]string{p.Broker, dir}, anyCPU, filepath.Join(dir, "broker.log"))
		if err != nil {
			t.fail(err.Error())
			return t
		}
		t.brokers = append(t.brokers, b)
		if !b.says(p.ctx, 0, "ready", startWithin) {
			t.fail("the broker did not start")
		}
	}
	return t
}

// start starts an application of the pair; on error the pair has failed.
func (t *pair) start(argv []string, cpu int, name string) *process {
	if t.why != "" {
		return nil
	}
	p, err := startProcess(argv, cpu, filepath.Join(t.dir, name+".log"))
	if err != nil {
		t.fail(err.Error())
	}
	return p
}

// started waits until a process prints a text; otherwise the pair has failed.
func (t *pair) started(ctx context.Context, p *process, text, otherwise string) bool {
	if t.why == "" && !p.says(ctx, 0, text, startWithin) {
		t.fail(otherwise)
	}
	return t.why == ""
}

// words splits a text; {d} is the first link's directory, {e} the second link's.
func (t *pair) words(text string) []string {
	return strings.Fields(strings.NewReplacer("{d}", t.dir, "{e}", filepath.Join(t.dir, "e")).Replace(text))
}

// eal is EAL's arguments for an application on one side, with these devices.
func (p *place) eal(t *pair, side int, devices string) []string {
	cpu := strconv.Itoa(p.cpus[side])
	argv := []string{"--lcores", "0@" + cpu + ",1@" + cpu, "--no-huge", "--no-shconf", "-m", "128", "--single-file-segments", "--no-pci", "--no-telemetry"}
	if strings.Contains(devices, "net_dray") {
		argv = append(argv, "-d", p.Driver)
	}
	return append(argv, t.words(devices)...)
}

// resume continues a pair, receivers first; pause stops it, senders first.
func (t *pair) resume() {
	for _, p := range []*process{t.between, t.receiver, t.sender} {
		p.signal(unix.SIGCONT)
	}
}

func (t *pair) pause() {
	for _, p := range []*process{t.sender, t.receiver, t.between} {
		p.signal(unix.SIGSTOP)
	}
}

// finish ends a pair. A container gets time to end by itself, so that runc removes its
// control groups.
func (t *pair) finish() {
	if t.container && t.between.alive() {
		t.between.signal(unix.SIGCONT)
		_ = unix.Kill(t.between.innermost(), unix.SIGTERM) // it may have just ended
		t.between.waitOrKill(containerWithin)
	}
	t.receiver.kill() // before the sender: net_memif dies with its peer
	t.sender.kill()
	t.between.kill()
	for _, b := range t.brokers {
		b.kill()
	}
}

// fail ends an unmeasurable pair. It returns 0, which is no sample.
func (t *pair) fail(why string) float64 {
	if t.why == "" {
		t.why = why
	}
	t.resume()
	t.finish()
	return 0
}
