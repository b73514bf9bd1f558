// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/kube/internal/socket"
)

// Options of a server.
type Options struct {
	Dir  string     // of the sockets; only root may look into it
	Addr netip.Addr // of this node, at which it receives tunnels; IPv4
	// Pods is the directory of the pods' network namespaces. Nothing outside it is touched.
	Pods string
	Log  *slog.Logger
}

// keepEvery is the interval at which a keeper that was away gets everything again.
const keepEvery = 5 * time.Second

type server struct {
	o      Options
	device string // with the node's address
	shapes bool   // ports can have a token bucket
	keeper kept
	probes prober

	mu     sync.Mutex
	halves map[string]*half
}

// Serve makes what its clients ask for until ctx ends. Then halves stay, and the next
// server takes them over from the keeper.
func Serve(ctx context.Context, o Options) error {
	s := &server{o: o, keeper: kept{o.Dir}, halves: map[string]*half{}, probes: prober{log: o.Log, probed: map[portOf]*probed{}}}
	var err error
	if s.device, err = deviceOf(o.Addr); err != nil {
		return err
	}
	if err := refuseRings(); err != nil {
		return fmt.Errorf("this kernel cannot keep the holder of a packet socket from taking memory without a limit, so no pod gets one: %w", err)
	}
	if err := host.ProbeTokenBucket(); err != nil {
		o.Log.Warn("no link gets a max_bitrate", "reason", err)
	} else {
		s.shapes = true
	}
	s.takeOver(ctx)
	go s.keepUp(ctx)
	go s.probes.run(ctx)
	return socket.Serve(ctx, controlSocket(o.Dir), func(c *net.UnixConn) { s.serve(ctx, c) })
}

// takeOver adopts what an earlier server has made.
func (s *server) takeOver(ctx context.Context) {
	found, err := s.keeper.all(ctx)
	if err != nil {
		s.o.Log.Info("no keeper: nothing is taken over", "reason", err)
	}
	for name, file := range found {
		h, err := adopt(file)
		if err != nil {
			s.o.Log.Error("not taken over", "half", name, "error", err)
			_ = file.Close()
			continue
		}
		s.halves[name] = h
	}
	s.o.Log.Info("taken over", "halves", len(s.halves))
}

// keepUp gives the keeper what it lacks.
func (s *server) keepUp(ctx context.Context) {
	for host.Sleep(ctx, keepEvery) == nil {
		s.mu.Lock()
		there, err := s.keeper.all(ctx)
		for name, h := range s.halves {
			if err == nil && there[name] == nil {
				err = s.keeper.put(ctx, name, h.ns)
			}
		}
		s.mu.Unlock()
		for _, f := range there {
			_ = f.Close()
		}
		if err != nil {
			s.o.Log.Warn("the keeper is away; if this process dies as well, links between nodes are interrupted", "error", err)
		}
	}
}

// serve answers one call.
func (s *server) serve(ctx context.Context, c *net.UnixConn) {
	_ = c.SetDeadline(time.Now().Add(callTimeout))
	var q request
	files, err := receive(c, &q)
	closeFiles(files)
	if err != nil {
		return
	}
	var r response
	var fds []int
	switch {
	case q.Info:
		r.Info, err = s.info()
	case q.List:
		r.Made = s.list()
	case q.Apply != nil:
		r.Made, err = s.apply(ctx, q.Apply)
	case q.Measured != nil:
		r.Measured, err = s.probes.since(q.Measured)
	case q.Sockets != nil:
		fds, err = s.sockets(q.Sockets)
	default:
		err = errors.New("the call asks for nothing")
	}
	if err != nil {
		r.Error = err.Error()
	}
	if err := send(c, r, fds...); err != nil {
		s.o.Log.Error("answer", "error", err)
	}
	closeAll(fds)
}

func (s *server) info() (*Info, error) {
	d, err := host.HostNetns.ReadLink(s.device)
	if err != nil {
		return nil, err
	}
	return &Info{Addr: s.o.Addr, MTU: d.MTU, Shapes: s.shapes}, nil
}

func (s *server) list() []Made {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := []Made{}
	for _, name := range slices.Sorted(maps.Keys(s.halves)) {
		made = append(made, Made{Name: name, VNI: s.halves[name].vni})
	}
	return made
}

// apply makes, changes and removes halves.
func (s *server) apply(ctx context.Context, q *applyRequest) ([]Made, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := map[string]bool{}
	made := []Made{}
	for _, want := range q.Halves {
		wanted[want.Name] = true
		m := Made{Name: want.Name}
		h, err := s.ensure(ctx, want)
		if err != nil {
			m.Error = err.Error()
		} else {
			m.VNI = h.vni
			s.setPorts(h, want, &m)
			s.measure(h, want)
		}
		made = append(made, m)
	}
	var errs []error
	for name := range s.halves {
		if q.Prune && !wanted[name] {
			errs = append(errs, s.remove(ctx, name))
		}
	}
	return made, errors.Join(errs...)
}

// ensure makes a half as it is wanted, but for its ports.
func (s *server) ensure(ctx context.Context, want Half) (*half, error) {
	if err := want.check(); err != nil {
		return nil, err
	}
	h := s.halves[want.Name]
	if h != nil && !h.is(want) {
		if err := s.remove(ctx, want.Name); err != nil {
			return nil, err
		}
		h = nil
	}
	if h != nil {
		return h, s.setTunnel(h, want)
	}
	h, err := s.make(ctx, want)
	if err != nil {
		return nil, err
	}
	s.halves[want.Name] = h
	if err := s.setTunnel(h, want); err != nil {
		return nil, errors.Join(err, s.remove(ctx, want.Name))
	}
	s.o.Log.Info("half made", "half", want.Name, "vni", h.vni)
	return h, nil
}

// check refuses what cannot be a half.
func (h *Half) check() error {
	if h.Name == "" || h.MTU <= 0 || len(h.Ports) == 0 && len(h.MAC) == 0 {
		return errors.New("a half needs a name, an MTU, and ports or a MAC")
	}
	for _, p := range h.Ports {
		if p.End < 0 || p.End > 1 || len(p.MAC) == 0 || p.Interface != nil && !interfaceName.MatchString(p.Interface.Name) {
			return fmt.Errorf("end %d: not a port of a link", p.End)
		}
	}
	return nil
}

// interfaceName is the name that a port of a chain can have.
var interfaceName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?$`)

// make makes a namespace, has the keeper hold it, and makes the bridge in it, if it is to
// have ports.
func (s *server) make(ctx context.Context, want Half) (*half, error) {
	ns, err := host.NewNetns()
	if err != nil {
		return nil, err
	}
	if err := s.keeper.put(ctx, want.Name, ns); err != nil {
		s.o.Log.Warn("the keeper is away", "error", err) // keepUp tries again
	}
	h := &half{ns: ns, mtu: want.MTU, hub: len(want.Ports) > 0}
	if h.hub {
		err = h.makeHub()
	}
	if err != nil {
		_ = s.keeper.drop(ctx, want.Name)
		_ = ns.Close()
		return nil, err
	}
	return h, nil
}

// remove removes a half. An application may still have its namespace by a socket, but
// without the tunnel and the bridge in it.
func (s *server) remove(ctx context.Context, name string) error {
	h := s.halves[name]
	s.probes.keep(name, nil)
	if err := errors.Join(h.closeTunnel(), h.removePorts(), h.at().RemoveLink(hub)); err != nil {
		return err
	}
	if err := s.keeper.drop(ctx, name); err != nil {
		s.o.Log.Warn("the keeper is away", "error", err)
	}
	delete(s.halves, name)
	s.o.Log.Info("half removed", "half", name)
	return h.ns.Close()
}

// sockets opens packet sockets on a half.
func (s *server) sockets(q *socketsRequest) ([]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.halves[q.Half]
	if h == nil {
		return nil, fmt.Errorf("link %s has no half here", q.Half)
	}
	if !h.hasSockets(q.Device) {
		return nil, fmt.Errorf("link %s has no port %s here", q.Half, q.Device)
	}
	if q.Queues < 1 || q.Queues > maxFiles {
		return nil, fmt.Errorf("%d queues: 1 to %d", q.Queues, maxFiles)
	}
	return broker.Watched{Filter: noProbes, Sockets: tapSockets}.PacketSockets(&broker.End{Netns: h.at().Path, Interface: q.Device, Queues: q.Queues}, q.Queues)
}

// hasSockets reports whether packet sockets on an interface of the half are a port's.
func (h *half) hasSockets(device string) bool {
	if h.hub {
		return device == PortDevice(0) || device == PortDevice(1)
	}
	return device == Device
}
