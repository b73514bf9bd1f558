// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/test/testenv"
)

// An upgrade of the package replaces the programs while chains are up. Files of a chain in
// testdata/older are as dray 0.2.0 wrote them; a later version must know the chain.

// older is the running pair with the files that an older version wrote. Its supervisor, and the
// process of each function, is only a program that sleeps.
func older(t *testing.T, n *Node) (l *Live, kill func()) {
	t.Helper()
	c, p := planned(t, pairYAML)
	l = commit(t, n, c, p)
	testenv.Must(t, l.Release())
	written, err := n.readJournal("pair")
	testenv.Must(t, err)
	cgroup := written.Resources[slices.IndexFunc(written.Resources, func(r step.Resource) bool { return r.Kind == host.KindCgroup })].Path
	id, kill := sleeping(t)
	t.Cleanup(func() {
		kill()
		if _, err := n.Down(context.Background(), "pair"); err != nil && found(n, "pair") {
			t.Error(err)
		}
	})
	asOlder(t, n, filepath.Join("testdata", "older"), "pair", filepath.Dir(cgroup), id, fileChain, fileJournal, fileState, fileStatus)
	l, err = n.Open("pair")
	testenv.Must(t, err)
	return l, kill
}

// sleeping is a process that only sleeps.
func sleeping(t *testing.T) (id host.ProcessID, kill func()) {
	t.Helper()
	sleep := exec.Command("sleep", "1000")
	testenv.Must(t, sleep.Start())
	ended := make(chan struct{})
	go func() {
		_ = sleep.Wait()
		close(ended)
	}()
	kill = func() {
		_ = sleep.Process.Kill()
		<-ended
	}
	t.Cleanup(kill)
	id, err := host.Identify(sleep.Process.Pid)
	testenv.Must(t, err)
	return id, kill
}

// asOlder writes files of an older version to the directory of a chain, with places and a process
// of this host.
func asOlder(t *testing.T, n *Node, from, chain, cgroups string, id host.ProcessID, files ...string) {
	t.Helper()
	now := strings.NewReplacer("STATE", n.StateDir, "CGROUPS", cgroups, "BOOT", id.Boot,
		`"pid": 11`, `"pid": `+strconv.Itoa(id.PID), `"start": 22`, `"start": `+strconv.FormatUint(id.Start, 10),
		`"pid":11`, `"pid":`+strconv.Itoa(id.PID), `"start":22`, `"start":`+strconv.FormatUint(id.Start, 10))
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(from, file))
		testenv.Must(t, err)
		testenv.Must(t, os.WriteFile(filepath.Join(n.dir(chain), file), []byte(now.Replace(string(text))), 0o600))
	}
}

// found reports whether a chain has a directory.
func found(n *Node, name string) bool {
	_, err := os.Stat(n.dir(name))
	return err == nil
}

// TestTheStateOfAnOlderVersionIsKnown: status shows the chain as up, and gc leaves it alone.
func TestTheStateOfAnOlderVersionIsKnown(t *testing.T) {
	n := newNode(t)
	ctx := context.Background()
	l, _ := older(t, n)
	functions, supervised, err := l.Status()
	if err != nil || !supervised || len(functions) != 2 || functions[0].Phase != PhaseRunning || functions[1].Phase != PhaseRunning {
		t.Errorf("functions: %+v, %v, %v", functions, supervised, err)
	}
	if faults := l.LinkFaults(); len(faults) > 0 {
		t.Errorf("links: %v", faults)
	}
	if wrong, err := l.Wrong(ctx); err != nil || len(wrong.Commands)+len(wrong.Sandboxes)+len(wrong.Links) > 0 {
		t.Errorf("wrong: %+v, %v", wrong, err)
	}
	c, p := planned(t, pairYAML)
	if changes := l.Difference(c, p, Wrong{}); len(changes) > 0 {
		t.Errorf("the same chain differs: %+v", changes)
	}
	testenv.Must(t, l.Release())
	if removed, err := n.Collect(ctx); err != nil || len(removed) > 0 {
		t.Errorf("gc: %+v, %v", removed, err)
	}
	list, err := n.List()
	if err != nil || len(list) != 1 || list[0].Chain != "pair" || list[0].Condition != Up {
		t.Errorf("list: %+v, %v", list, err)
	}
	if bad := n.damaged("pair"); len(bad) > 0 {
		t.Errorf("it takes %v for damaged", bad)
	}
	removed, err := n.Down(ctx, "pair")
	if err != nil || len(removed.SetAside) > 0 {
		t.Errorf("down: %+v, %v", removed, err)
	}
	for _, end := range []string{"a", "b"} {
		if l.State.Sandboxes[end].Netns.Exists() {
			t.Errorf("down leaves the namespace of %s", end)
		}
	}
}

// TestTheBrokerAndTheSwitchOfAnOlderVersionAreKnown: the process of a broker, and that of a switch
// which was started again. The files are as dray 0.2.0 wrote them, for values that were chosen.
func TestTheBrokerAndTheSwitchOfAnOlderVersionAreKnown(t *testing.T) {
	n := newNode(t)
	ctx := context.Background()
	id, _ := sleeping(t)
	testenv.Must(t, os.MkdirAll(n.dir("mixed"), 0o700))
	testenv.Must(t, touch(n.lockFile("mixed")))
	files := []string{fileChain, fileJournal, fileState, fileStatus, fileBroker, fileProcesses}
	asOlder(t, n, filepath.Join("testdata", "older", "mixed"), "mixed", filepath.Dir(n.Cgroup("mixed").Path), id, files...)
	for file, v := range map[string]any{fileState: &State{}, fileStatus: &Status{}, fileBroker: &Broker{}, fileProcesses: &map[string]Revival{}} {
		f, err := os.Open(filepath.Join(n.dir("mixed"), file))
		testenv.Must(t, err)
		d := json.NewDecoder(f)
		d.DisallowUnknownFields()
		if err := errors.Join(d.Decode(v), f.Close()); err != nil {
			t.Errorf("%s has what this version does not know: %v", file, err)
		}
	}
	l, err := n.Open("mixed")
	testenv.Must(t, err)
	if b, err := l.Broker(); err != nil || b == nil || b.Process != id || b.Restarts != 2 {
		t.Errorf("broker: %+v, %v", b, err)
	}
	revivals, err := l.Revivals()
	if now := l.processes("sw", revivals); err != nil || len(now) != 2 || now[0].ID != id || now[1].Name != "ovs-vswitchd" || revivals["sw"].Restarts != 1 {
		t.Errorf("the switch: %+v, %+v, %v", now, revivals, err)
	}
	if faults := l.LinkFaults(); faults["sw"] != "" || !strings.Contains(faults["sh"], "broker") { // none answers here
		t.Errorf("links: %v", faults)
	}
	if dirs := l.PortDirs(); dirs["a"] != filepath.Join(n.dir("mixed"), "fn", "a", "ports") {
		t.Errorf("the sockets are in %v", dirs)
	}
	if all, err := n.claims(""); err != nil || !slices.Equal(all.cpus["mixed"], []int{3}) {
		t.Errorf("CPUs: %v, %v", all, err)
	}
	if removed, err := n.CollectBroken(ctx); err != nil || len(removed) > 0 {
		t.Errorf("gc: %+v, %v", removed, err)
	}
	if bad := n.damaged("mixed"); len(bad) > 0 {
		t.Errorf("it takes %v for damaged", bad)
	}
	if removed, err := n.Down(ctx, "mixed"); err != nil || len(removed.SetAside)+len(removed.Left) > 0 || found(n, "mixed") {
		t.Errorf("down: %+v, %v", removed, err)
	}
}

// TestAFileThatThisVersionRefusesBreaksNoChain: it stays up, commands say why they do not work,
// and down removes it. An older version let two ports on an uplink have one address.
func TestAFileThatThisVersionRefusesBreaksNoChain(t *testing.T) {
	n := newNode(t)
	ctx := context.Background()
	l, _ := older(t, n)
	testenv.Must(t, l.Release())
	refused, err := os.ReadFile(filepath.Join("testdata", "older", "ip-twice-on-uplink.yaml"))
	testenv.Must(t, err)
	testenv.Must(t, os.WriteFile(l.ChainFile(), refused, 0o600))
	if removed, err := n.CollectBroken(ctx); err != nil || len(removed) > 0 {
		t.Errorf("gc removed %+v, %v", removed, err)
	}
	if list, err := n.List(); err != nil || len(list) != 1 || list[0].Condition != Up {
		t.Errorf("list: %+v, %v", list, err)
	}
	for _, open := range []func() (*Live, error){func() (*Live, error) { return n.Open("pair") }, func() (*Live, error) { return n.OpenLocked(ctx, "pair") }} {
		if _, err := open(); err == nil || !strings.Contains(err.Error(), "has the same ip") || !strings.Contains(err.Error(), "dray down pair") {
			t.Errorf("open: %v", err)
		}
	}
	if figures, err := n.Figures(); err != nil || len(figures) != 1 || figures[0].Condition != Up {
		t.Errorf("metrics: %+v, %v", figures, err)
	}
	removed, err := n.Down(ctx, "pair")
	if err != nil || len(removed.SetAside) > 0 || l.State.Sandboxes["a"].Netns.Exists() {
		t.Errorf("down: %+v, %v", removed, err)
	}
}

// TestAnOlderChainIsCollected if the dray that made it was killed before the chain was complete.
func TestAnOlderChainIsCollected(t *testing.T) {
	n := newNode(t)
	l, kill := older(t, n)
	kill()
	testenv.Must(t, l.Release())
	path := n.journalFile("pair")
	text, err := os.ReadFile(path)
	testenv.Must(t, err)
	testenv.Must(t, os.WriteFile(path, []byte(strings.Replace(string(text), `{"commit":true}`+"\n", "", 1)), 0o600))
	removed, err := n.Collect(context.Background())
	if err != nil || len(removed) != 1 || l.State.Sandboxes["a"].Netns.Exists() {
		t.Errorf("gc: %+v, %v", removed, err)
	}
}

// TestAnOlderSupervisorStartsNoFunctionAgain: a change that needs that is refused before anything
// is touched, and any other is not.
func TestAnOlderSupervisorStartsNoFunctionAgain(t *testing.T) {
	n := newNode(t)
	l, _ := older(t, n)
	status, err := l.published()
	testenv.Must(t, err)
	ended := []Change{{What: kindFunction, Name: "a", Action: Restart, Why: "function a ended with status 137"}}
	gone := []Change{{What: kindFunction, Name: "a", Action: Add, Why: "the network namespace of function a is gone"}}
	if err := l.checkSupervised(status); err != nil || status.Protocol != 1 {
		t.Errorf("protocol %d: %v", status.Protocol, err)
	}
	for _, again := range [][]Change{ended, gone} {
		if err := status.canStartAgain("pair", again); err == nil || !strings.Contains(err.Error(), "dray down pair") {
			t.Errorf("%+v: %v", again, err)
		}
	}
	for _, c := range []Change{{What: kindFunction, Name: "a", Action: Restart, Fields: []string{"command"}}, {What: kindFunction, Name: "c", Action: Add}, {What: kindLink, Name: "ab", Action: Replace, Why: "is down"}} {
		if err := status.canStartAgain("pair", []Change{c}); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	status.Protocol = supervisorProtocol
	for _, again := range [][]Change{ended, gone} {
		if err := status.canStartAgain("pair", again); err != nil {
			t.Errorf("a supervisor of this version: %v", err)
		}
	}
	testenv.Must(t, l.Release())
}

// TestAnOlderSupervisorReadsNoNewField: the change is refused before anything is touched.
func TestAnOlderSupervisorReadsNoNewField(t *testing.T) {
	n := newNode(t)
	older(t, n)
	text := pairYAML + "paths: [{name: p, from: a.p0, to: b.p0, requires: {mtu: 1400}}]\n"
	before, err := os.ReadFile(filepath.Join(n.dir("pair"), fileState))
	testenv.Must(t, err)
	if what, err := applied(t, n, text); err == nil || !strings.Contains(err.Error(), "path p requires an mtu") || !strings.Contains(err.Error(), "dray down pair") {
		t.Errorf("%s: %v", what, err)
	}
	if after, err := os.ReadFile(filepath.Join(n.dir("pair"), fileState)); err != nil || string(after) != string(before) {
		t.Errorf("the state is changed: %v", err)
	}
}
