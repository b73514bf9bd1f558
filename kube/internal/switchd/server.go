// SPDX-License-Identifier: Apache-2.0

package switchd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/drayage/dray/kube/internal/nodeswitch"
	"github.com/drayage/dray/kube/internal/socket"
)

// answerWithin is how long a call of Apply waits for Open vSwitch. What takes longer goes on, and
// the answer says so.
const answerWithin = nodeswitch.CallTimeout / 2

type server struct {
	o        Options
	ovs      *ovs
	underlay *underlay
	db       *process
	vswitchd *process
	kick     chan struct{} // the links, or Open vSwitch, have changed

	mu     sync.Mutex
	wanted []entry
	asked  int               // calls that have changed what is wanted
	done   int               // the last of them that a whole round has seen
	turn   chan struct{}     // closed when a round ends
	errs   map[string]string // of links, by name; none: it is as wanted
	faults map[string]string // of ports, by name
}

// Serve runs the switch until ctx ends.
func Serve(ctx context.Context, o Options) error {
	s, err := newServer(ctx, o)
	if err != nil {
		return err
	}
	silent, err := mute(o.Port)
	if err != nil {
		return err
	}
	defer silent.Close()
	if err := s.ovs.create(ctx); err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	running.Go(func() { s.db.keep(ctx) })
	if err := s.ovs.configure(ctx); err != nil {
		return err
	}
	running.Go(func() { s.vswitchd.keep(ctx) })
	for _, threads := range restless {
		running.Go(func() { s.vswitchd.endIfAsleep(ctx, threads, asleep) })
	}
	running.Go(func() { s.work(ctx) })
	if os.Getpid() == 1 {
		running.Go(func() { reap(ctx) })
	}
	return socket.Serve(ctx, nodeswitch.ControlSocket(o.Dir), s.serve)
}

func newServer(ctx context.Context, o Options) (*server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &server{o: o, kick: make(chan struct{}, 1), turn: make(chan struct{}), errs: map[string]string{}, faults: map[string]string{}}
	var err error
	if s.underlay, err = readUnderlay(o.Device); err != nil {
		return nil, err
	}
	// What an earlier process showed to Open vSwitch has gone with it.
	ports := filepath.Join(o.Run, "ports")
	if err := errors.Join(os.MkdirAll(o.Dir, 0o700), os.MkdirAll(o.Run, 0o700), os.RemoveAll(ports), os.Mkdir(ports, 0o700)); err != nil {
		return nil, err
	}
	if s.wanted, err = load(o.Dir, o.Log); err != nil {
		return nil, err
	}
	if s.ovs, err = findOVS(ctx, o); err != nil {
		return nil, err
	}
	keep := func(name string, argv []string) *process {
		return &process{name: name, argv: argv, env: s.ovs.environment(), log: o.Log, changed: s.wake}
	}
	s.db, s.vswitchd = keep("ovsdb-server", s.ovs.dbArgs()), keep("ovs-vswitchd", s.ovs.switchArgs())
	o.Log.Info("the switch starts", "version", s.ovs.program.Version, "address", s.underlay.addr, "cpus", s.ovs.cpus, "links", len(s.wanted))
	return s, nil
}

// wake has a round begin.
func (s *server) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// serve answers one call.
func (s *server) serve(c *net.UnixConn) {
	_ = c.SetDeadline(time.Now().Add(nodeswitch.CallTimeout))
	var q nodeswitch.Request
	if nodeswitch.Read(c, &q) != nil {
		return
	}
	var r nodeswitch.Response
	var err error
	switch {
	case q.Info:
		r.Info = &nodeswitch.Info{Addr: s.underlay.addr, MTU: s.underlay.mtu, Version: s.ovs.program.Version}
	case q.List:
		r.Made = s.list(nil)
	case q.Apply != nil:
		r.Made, err = s.apply(q.Apply)
	default:
		err = errors.New("the call asks for nothing")
	}
	if err != nil {
		r.Error = err.Error()
	}
	if err := nodeswitch.Write(c, r); err != nil {
		s.o.Log.Error("answer", "error", err)
	}
}

// apply writes down what is wanted, and waits for it a while.
func (s *server) apply(q *nodeswitch.Apply) ([]nodeswitch.Made, error) {
	refused := map[string]string{}
	links := slices.DeleteFunc(slices.Clone(q.Links), func(l nodeswitch.Link) bool {
		err := check(s.o.Dir, &l)
		if err != nil {
			refused[l.Name] = err.Error()
		}
		return err != nil
	})
	turn, asked, err := s.want(links, q.Prune)
	if err != nil {
		return nil, err
	}
	late := time.After(answerWithin)
	for arrived := false; !arrived; {
		select {
		case <-turn:
		case <-late:
			arrived = true
		}
		s.mu.Lock()
		arrived = arrived || s.done >= asked
		turn = s.turn
		s.mu.Unlock()
	}
	return s.answer(q.Links, refused), nil
}

// errMaking is what a link has until a round has seen it.
const errMaking = "Open vSwitch has not made it yet"

// want changes what is wanted, and returns what ends with the next round, and which call it is.
func (s *server) want(links []nodeswitch.Link, prune bool) (turn chan struct{}, asked int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := merge(s.wanted, links, prune)
	if len(all) > nodeswitch.MaxLinks {
		return nil, 0, fmt.Errorf("%d links: a switch has at most %d", len(all), nodeswitch.MaxLinks)
	}
	if err := store(s.o.Dir, all); err != nil {
		return nil, 0, err
	}
	for _, e := range all {
		if !slices.ContainsFunc(s.wanted, func(o entry) bool { return o.Name == e.Name }) {
			s.errs[e.Name] = errMaking
		}
	}
	s.wanted = all
	s.asked++
	s.wake()
	return s.turn, s.asked, nil
}

// answer says what became of the links of a call, in its order.
func (s *server) answer(links []nodeswitch.Link, refused map[string]string) []nodeswitch.Made {
	made := []nodeswitch.Made{}
	for _, l := range links {
		if why := refused[l.Name]; why != "" {
			made = append(made, nodeswitch.Made{Name: l.Name, Error: why})
			continue
		}
		made = append(made, s.list(func(name string) bool { return name == l.Name })...)
	}
	return made
}

// list returns links as they are; no choice: all.
func (s *server) list(chosen func(name string) bool) []nodeswitch.Made {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := []nodeswitch.Made{}
	for i := range s.wanted {
		e := &s.wanted[i]
		if chosen != nil && !chosen(e.Name) {
			continue
		}
		m := nodeswitch.Made{Name: e.Name, VNI: e.VNI, Error: s.errs[e.Name]}
		for _, p := range e.Ports {
			if fault := s.faults[e.portName(p.End)]; fault != "" {
				if m.Faults == nil {
					m.Faults = map[int]string{}
				}
				m.Faults[p.End] = fault
			}
		}
		made = append(made, m)
	}
	return made
}

// report keeps what is wrong with a port; "": nothing.
func (s *server) report(port, fault string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fault != "" && fault != s.faults[port] {
		s.o.Log.Warn("port", "port", port, "fault", fault)
	}
	if s.faults[port] = fault; fault == "" {
		delete(s.faults, port)
	}
}
