// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/process"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/loopback"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/veth"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

// TestFigures looks at a pair while it runs, then after a port was deleted and a command
// killed.
func TestFigures(t *testing.T) {
	n := newNode(t)
	supervisedPair(t, n)
	figures := func() Figures {
		t.Helper()
		all, err := n.Figures()
		testenv.Must(t, err)
		if len(all) != 1 || all[0].Condition != Up || len(all[0].Functions) != 2 || len(all[0].Interfaces) != 2 {
			t.Fatalf("%+v", all)
		}
		return all[0]
	}
	now := figures()
	for i, st := range now.Functions {
		port := now.Interfaces[i]
		if st.Phase != PhaseRunning || st.Ended() || port.Function != st.Name || port.Link != "ab" || port.Port != "p0" || port.Traffic == nil || !port.Traffic.Carrier {
			t.Errorf("%+v, %+v", st, port)
		}
	}
	l, err := n.Open("pair")
	testenv.Must(t, err)
	testenv.Must(t, l.State.Sandboxes["b"].Netns.RemoveLink("p0"))
	testenv.Must(t, syscall.Kill(now.Functions[0].Process.PID, syscall.SIGKILL))
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patient(time.Minute))
	defer cancel()
	for now = figures(); now.Functions[0].Phase != PhaseFailed; now = figures() {
		testenv.Must(t, host.Sleep(ctx, time.Millisecond))
	}
	if st := now.Functions[0]; !st.Ended() || st.Exit != 128+9 {
		t.Errorf("%+v", st)
	}
	if now.Functions[1].Phase != PhaseRunning || now.Interfaces[1].Traffic != nil {
		t.Errorf("%+v, %+v", now.Functions[1], now.Interfaces[1])
	}
}

// TestFiguresOfDamage: one chain's damage hides no other chain, and one function's namespace no
// other function.
func TestFiguresOfDamage(t *testing.T) {
	n := newNode(t)
	l := published(t, n)
	path := l.State.Sandboxes["a"].Netns.Path
	testenv.Must(t, unix.Unmount(path, unix.MNT_DETACH))
	testenv.Must(t, unix.Mount("/proc/self/ns/uts", path, "", unix.MS_BIND, ""))
	all, err := n.Figures()
	if err != nil || len(all) != 1 || all[0].Condition != Up || len(all[0].Interfaces) != 2 || all[0].Interfaces[0].Traffic != nil || all[0].Interfaces[1].Traffic == nil {
		t.Errorf("%+v, %v", all, err)
	}
	testenv.Must(t, unix.Unmount(path, 0))
	testenv.Must(t, os.WriteFile(filepath.Join(l.dir, fileStatus), []byte("{"), 0o600))
	all, err = n.Figures()
	if err != nil || len(all) != 1 || all[0].Condition != Broken || all[0].Functions != nil {
		t.Errorf("%+v, %v", all, err)
	}
}

// published is the pair with the status of a supervisor that does nothing.
func published(t *testing.T, n *Node) *Live {
	t.Helper()
	c, p := planned(t, pairYAML)
	l := commit(t, n, c, p)
	_, err := l.Supervise()
	testenv.Must(t, err)
	t.Cleanup(func() {
		testenv.Must(t, os.RemoveAll(filepath.Join(l.dir, fileStatus))) // down would end this process, its supervisor
		_, err := n.Down(context.Background(), "pair")
		testenv.Must(t, err)
	})
	return l
}

// machine is a runtime that boots.
type machine struct {
	runtime.Runtime
	runtime.Booter
}

func (machine) Name() chain.RuntimeName { return chain.RuntimeVM }

// TestPortsThatAreInterfaces: a VM's port that a switch reaches by a socket is none, and the
// interface of a VM's other ports is in the guest.
func TestPortsThatAreInterfaces(t *testing.T) {
	n := &Node{
		Transports: []transport.Driver{transport.Define("switch", inventory.Caps{Machines: true}, nil, nil), veth.New(), loopback.New()},
		Runtimes:   []runtime.Runtime{machine{}, process.New()},
	}
	for _, test := range []struct {
		transport string
		runtime   chain.RuntimeName
		counts    bool // there is an interface to read
		own       bool // and it is the function's own
	}{
		{"veth", chain.RuntimeProcess, true, true},
		{"veth", chain.RuntimeVM, true, false},
		{"switch", chain.RuntimeProcess, true, true},
		{"switch", chain.RuntimeVM, false, false},
		{"loopback", chain.RuntimeProcess, false, false},
	} {
		link := plan.Link{Name: "ab", Transport: test.transport, Ends: []plan.End{{Function: "a", Port: "p0", Face: chain.FaceNetdev}, {Uplink: "eth0"}}}
		l := &Live{
			Chain: &chain.Chain{Functions: []chain.Function{{Name: "a", Runtime: test.runtime}}},
			State: State{Plan: &plan.Plan{Links: []plan.Link{link}}, Sandboxes: map[string]*runtime.Sandbox{"a": {Netns: host.Netns{Path: "/nowhere"}}}},
			node:  n,
		}
		all := l.interfaces()
		if own := l.ownInterface(link, link.Ends[0]); (len(all) == 1) != test.counts || own != test.own {
			t.Errorf("%+v: %+v, own %v", test, all, own)
		}
	}
}
