// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/fake"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// sleeper is a driver whose links have one sleeping process.
type sleeper struct {
	*fake.Driver
	t *testing.T

	mu   sync.Mutex
	fail int // how many revivals fail before one succeeds
}

func (s *sleeper) start() host.ProcessID {
	s.t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		s.t.Error(err)
		return host.ProcessID{}
	}
	id, err := host.Identify(cmd.Process.Pid)
	if err != nil {
		s.t.Error(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	return id
}

func (s *sleeper) Revive(_ context.Context, _ transport.Spec, r *transport.Report) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail > 0 {
		s.fail--
		return errors.New("no memory for a switch")
	}
	r.Note("switch", s.start(), r.Processes[0].Log)
	return nil
}

// keptLink is a chain with one link over a sleeper, and its keeper.
func keptLink(t *testing.T) (*sleeper, *Live, host.ProcessID) {
	t.Helper()
	s := &sleeper{Driver: fake.New("sleeper"), t: t}
	n := &Node{StateDir: t.TempDir(), Transports: []transport.Driver{s}}
	l := &Live{Chain: &chain.Chain{Name: "c"}, dir: n.dir("c"), node: n}
	if err := os.Mkdir(l.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	first := s.start()
	log := filepath.Join(l.dir, "switch.log")
	l.State.Plan = &plan.Plan{Links: []plan.Link{{Name: "ab", Transport: "sleeper"}, {Name: "plain", Transport: "veth"}}}
	l.State.Reports = map[string]*transport.Report{
		"ab":    {Processes: []transport.Process{{Name: "switch", ID: first, Log: log}}},
		"plain": {},
	}
	if err := writeJSON(filepath.Join(l.dir, fileState), l.State); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.ChainFile(), []byte(pairYAML), 0o600); err != nil { // it must be readable
		t.Fatal(err)
	}
	return s, l, first
}

// awaitRevival waits until the link's revival is so.
func awaitRevival(t *testing.T, l *Live, want func(Revival) bool) Revival {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		all, err := l.Revivals()
		if err != nil {
			t.Fatal(err)
		}
		if want(all["ab"]) {
			return all["ab"]
		}
		if time.Now().After(deadline) {
			t.Fatalf("it came to %+v", all)
		}
	}
}

func TestAProcessOfALinkThatEndsIsStartedAgain(t *testing.T) {
	s, l, first := keptLink(t)
	l.links.begin(l.reviveLinks)
	defer l.links.end()
	if faults := l.LinkFaults(); len(faults) > 0 {
		t.Errorf("faults %q", faults)
	}
	if !first.Signal(syscall.SIGKILL) {
		t.Fatal("the process does not run")
	}
	again := awaitRevival(t, l, func(r Revival) bool { return r.Restarts == 1 })
	if p := again.Processes[0]; p.ID == first || !p.ID.Alive() || again.Outage <= 0 {
		t.Errorf("after the first end: %+v", again)
	}
	wantFaults(t, l.LinkFaults(), nil)

	// The second one needs several attempts; the reason is published meanwhile.
	s.mu.Lock()
	s.fail = 3
	s.mu.Unlock()
	again.Processes[0].ID.Signal(syscall.SIGKILL)
	awaitRevival(t, l, func(r Revival) bool { return strings.Contains(r.Error, "no memory") })
	wantFaults(t, l.LinkFaults(), map[string]string{"ab": "no memory for a switch"})
	third := awaitRevival(t, l, func(r Revival) bool { return r.Restarts > 1 && r.Error == "" })
	if !third.Processes[0].ID.Alive() {
		t.Errorf("after the second end: %+v", third)
	}
	wantFaults(t, l.LinkFaults(), nil)
}

// TestNobodyRevivesALeftLink: a process that gave a chain up no longer touches its
// processes.
func TestNobodyRevivesALeftLink(t *testing.T) {
	_, l, first := keptLink(t)
	l.links.begin(l.reviveLinks)
	l.links.end()
	kill(t, first)
	time.Sleep(300 * time.Millisecond)
	all, err := l.Revivals()
	if err != nil || len(all) > 0 {
		t.Errorf("%+v, %v", all, err)
	}
	wantFaults(t, l.LinkFaults(), map[string]string{"ab": "no packets pass until it is restarted"})
}

// TestNobodyIsLeftToRevive: status promises no revival unsupervised.
func TestNobodyIsLeftToRevive(t *testing.T) {
	s, l, first := keptLink(t)
	kill(t, first)
	supervisor := s.start()
	status := Status{Supervisor: supervisor, Functions: map[string]FunctionStatus{"a": {Name: "a", Phase: PhaseNone}}}
	if err := writeJSON(filepath.Join(l.dir, fileStatus), status); err != nil {
		t.Fatal(err)
	}
	wantFaults(t, l.LinkFaults(), map[string]string{"ab": "until it is restarted"})
	kill(t, supervisor)
	wantFaults(t, l.LinkFaults(), map[string]string{"ab": "its supervisor is dead: dray down c"})
}

// kill ends a process and waits until it has ended.
func kill(t *testing.T, id host.ProcessID) {
	t.Helper()
	id.Signal(syscall.SIGKILL)
	if err := id.AwaitEnd(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// TestAMovedLinkIsNotRevived: the old process ended on purpose, and the new one is
// watched.
func TestAMovedLinkIsNotRevived(t *testing.T) {
	s, l, first := keptLink(t)
	l.links.begin(l.reviveLinks)
	defer l.links.end()
	moved := &Live{Chain: l.Chain, node: l.node, dir: l.dir, State: l.State}
	second := s.start()
	moved.State.Reports = map[string]*transport.Report{"ab": {Processes: []transport.Process{{Name: "switch", ID: second, Log: "elsewhere"}}}}
	moved.State.Moves = map[string]Moves{"ab": {Tried: 1, At: 1}}
	if err := writeJSON(filepath.Join(l.dir, fileState), moved.State); err != nil {
		t.Fatal(err)
	}
	kill(t, first)
	time.Sleep(300 * time.Millisecond)
	if all, err := l.Revivals(); err != nil || len(all) > 0 {
		t.Errorf("the old process was started again: %+v, %v", all, err)
	}
	second.Signal(syscall.SIGKILL)
	awaitRevival(t, l, func(r Revival) bool { return r.Restarts == 1 && r.Processes[0].Log == "elsewhere" })
}

func TestALogStaysShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "switch.log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, size := range []int{logBytes, 1} {
		if _, err := log.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if err := trimLog(path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := log.WriteString("goes on\n"); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != "goes on\n" {
		t.Errorf("the log holds %d bytes (%v)", len(now), err)
	}
	if older, err := os.Stat(path + ".1"); err != nil || older.Size() != logBytes {
		t.Errorf("the older log: %+v, %v", older, err)
	}
}

// TestARevivalIsNotForgotten by its supervisor, whatever becomes of the file.
func TestARevivalIsNotForgotten(t *testing.T) {
	_, l, _ := keptLink(t)
	k := &keeper{live: l}
	path := filepath.Join(l.dir, fileProcesses)
	testenv.Must(t, k.note("ab", Revival{Restarts: 1}))
	end := testenv.Unreadable(t, path)
	testenv.Must(t, k.note("cd", Revival{Restarts: 2}))
	end()
	damaged := maps.Clone(damages)
	damaged["removed"] = func(t *testing.T, path string) { testenv.Must(t, os.Remove(path)) }
	for name, damage := range damaged {
		damage(t, path)
		k.rewrite()
		if all, err := l.Revivals(); err != nil || all["ab"].Restarts != 1 || all["cd"].Restarts != 2 {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
}
