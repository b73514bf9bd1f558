// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/bridge"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/memif"
	"github.com/drayage/dray/internal/link/native"
	"github.com/drayage/dray/internal/link/ovsdpdk"
	"github.com/drayage/dray/internal/link/shm"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/vxlan"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/claims"
	"github.com/drayage/dray/kube/internal/nodenet"
	"github.com/drayage/dray/kube/internal/nodeswitch"
)

// links keeps the broker's links as the claims of this node want them.
type links struct {
	dir   string // of the broker
	meet  string // where the broker is asked for meetings
	net   nodenet.Client
	sw    nodeswitch.Client
	ports func(types.UID) string
	peers *peers
	netns func(pod types.UID) string // the network namespace of a pod; "": not known
	log   *slog.Logger
	warn  *warner // nil: no events
	// wrong is what dray-net said last of the ports of halves. It counts while dray-net is away.
	wrong map[string]map[int]string
}

// linkOf is the name at the broker of the link of a claim's port.
func linkOf(c *claims.Claim, p *claims.Port) string {
	return c.Namespace + "/" + p.Chain + "/" + p.Link.Name
}

// checkLink refuses a link that this node cannot make.
func checkLink(l *plan.Link) error {
	backend, known := fleet.Backends[l.Transport]
	known = known || meets(l) || switched(l)
	if !known || len(l.Ends) != 2 {
		return fmt.Errorf("link %s has transport %q and %d ends: nodes make only links of %s, %s, %s or %s between two ports so far",
			l.Name, l.Transport, len(l.Ends), shm.Name, memif.Name, bridge.Name, ovsdpdk.Name)
	}
	switch {
	case meets(l):
		return checkMeeting(l)
	case switched(l):
		return checkSwitched(l)
	}
	for _, e := range l.Ends {
		if e.Face == chain.FaceNetdev && bridged(l) {
			continue
		}
		if e.Backend != backend {
			return fmt.Errorf("link %s: libdray does not open port %s", l.Name, e)
		}
	}
	return nil
}

// bridged reports whether the ports of a link are interfaces, or packet sockets on
// interfaces: then dray-net makes them, wherever the link's ends are.
func bridged(l *plan.Link) bool { return l.Transport == bridge.Name }

// checkAcross refuses a link between nodes that this node cannot make.
func checkAcross(l *plan.Link) error {
	if l == nil {
		return nil
	}
	if l.Transport != vxlan.Name && l.Transport != ovsdpdk.NameTunnel {
		return fmt.Errorf("link %s between nodes has transport %q: nodes make only %s and %s", l.Name, l.Transport, vxlan.Name, ovsdpdk.NameTunnel)
	}
	return nil
}

// wish is a link as the claims of this node ask for it.
type wish struct {
	spec transport.Spec // without sockets of ports that are not on this node
	// half is this node's half; nil: it takes none. A link that is not bridged has one if its
	// other end is on another node.
	half *nodenet.Half
	// switched is the part of the link that the node's switch has; nil: none. Then there is no half.
	switched *nodeswitch.Link
	// unknown: nobody says where the other end is, or dray-net or the switch is away, so a link
	// that is up stays as it is.
	unknown bool
	// faulty: something is wrong with the half or the switch's part. A link of shared memory does not move to such a half.
	faulty bool
	// meets: the ends share memory without the broker, and listener is the end that listens.
	meets    bool
	listener int
}

// wanted are the links that the claims ask for, by name. A port whose claim is
// not on this node has no socket. Claims of different plans of one link cannot
// be joined: the oldest decides, and the others are refused, by UID.
func (l *links) wanted(all []claims.Claim) (map[string]*wish, faults) {
	first := map[string]*claims.Port{}
	wishes := map[string]*wish{}
	refused := faults{}
	for i := range all {
		c := &all[i]
		for j := range c.Ports {
			p := &c.Ports[j]
			if err := errors.Join(checkLink(&p.Link), checkAcross(p.Across)); err != nil { // as an older version accepted it
				refused.add(c.UID, err)
				continue
			}
			name := linkOf(c, p)
			w := wishes[name]
			if w == nil {
				w = &wish{spec: specOf(name, &p.Link), meets: meets(&p.Link), listener: fleet.Listener(&p.Link)}
				first[name], wishes[name] = p, w
				if w.switched, w.unknown = l.switchedOf(name, c, p); w.switched == nil {
					w.half, w.unknown = l.halfOf(name, c, p)
				}
			} else {
				w.bothHere()
			}
			if !fleet.Same(first[name].Link, p.Link) {
				refused.add(c.UID, fmt.Errorf("link %s was planned anew after its other pod started: delete that pod, too", p.Link.Name))
				continue
			}
			end := &w.spec.Ends[p.End()]
			end.Socket, end.User = filepath.Join(l.ports(c.UID), p.Port), c.User
			switch {
			case bridged(&p.Link):
				w.half.Ports = append(w.half.Ports, l.portOf(c, p))
			case w.switched != nil:
				w.switched.Ports = append(w.switched.Ports, l.switchPort(name, p))
			}
		}
	}
	return wishes, refused
}

// halfOf is the half of a port's link if the other end is on another node.
func (l *links) halfOf(name string, c *claims.Claim, p *claims.Port) (half *nodenet.Half, unknown bool) {
	if bridged(&p.Link) {
		half = &nodenet.Half{Name: name, MTU: p.Link.MTU, Tunnel: nodenet.TunnelNone}
	}
	if p.Across == nil {
		return half, false
	}
	peer, known := l.peers.of(c, p)
	if peer == nil {
		if half != nil && !known {
			half.Tunnel = nodenet.TunnelKept
		}
		return half, !known
	}
	own, other := p.Across.Ends[p.End()], p.Across.Ends[1-p.End()]
	if half == nil {
		half = &nodenet.Half{Name: name, MTU: p.Across.MTU, MAC: own.MAC}
	}
	half.Tunnel = nodenet.TunnelWanted
	if addr, known := peer.address(); known {
		half.Peer = &nodenet.Peer{MAC: other.MAC, Addr: addr, VNI: peer.tunnel.VNI}
	}
	return half, false
}

// bothHere says that the link crosses no nodes after all.
func (w *wish) bothHere() {
	w.unknown = false
	switch {
	case w.switched != nil:
		w.switched.Tunnel, w.switched.Peer = false, nil
	case w.bridged():
		w.half.Tunnel, w.half.Peer = nodenet.TunnelNone, nil
	default:
		w.half = nil
	}
}

// bridged reports whether the half has the link's ports.
func (w *wish) bridged() bool { return w.half != nil && len(w.half.MAC) == 0 }

// transport is what is behind the ports of the link, once it is as wished.
func (w *wish) transport(received tunnels) string {
	switch _, tunnel := received.at[w.spec.Link]; {
	case tunnel && w.switched != nil:
		return ovsdpdk.NameTunnel
	case w.switched != nil:
		return ovsdpdk.Name
	case tunnel:
		return vxlan.Name
	case w.bridged():
		return bridge.Name
	case w.meets:
		return memif.Name
	}
	return shm.Name
}

// portOf is a port of a claim on a bridged link.
func (l *links) portOf(c *claims.Claim, p *claims.Port) nodenet.Port {
	i := p.End()
	own, other := p.Link.Ends[i], p.Link.Ends[1-i]
	port := nodenet.Port{End: i, MAC: own.MAC, Queues: own.Queues, Shape: cmp.Or(own.Shape, p.Link.Shape)}
	if own.Face != chain.FaceNetdev {
		return port
	}
	port.Interface = &nodenet.Interface{Name: p.Port, IP: own.IP, Netns: l.netns(c.PodUID)}
	if other.Face != chain.FaceNetdev {
		port.Interface.Opposite = &nodenet.Neighbour{IP: other.IP.Addr(), MAC: other.MAC, DPDK: other.Face == chain.FaceDPDK}
	}
	return port
}

// brokered reports whether libdray opens a port of the link on this node.
func (w *wish) brokered() bool {
	here := func(e transport.End) bool { return e.Socket != "" && e.Brokered() }
	return !w.meets && w.switched == nil && slices.ContainsFunc(w.spec.Ends, here)
}

// served is a wish as the broker's link. Until the other node says where it receives,
// it is a link of shared memory whose other end has not come. Its ports queue what they send,
// also once it crosses nodes; those of a bridge have token buckets of dray-net.
func (w *wish) served() (broker.Link, error) {
	var link broker.Link
	switch {
	case w.bridged():
		return w.servedByInterfaces(nodenet.PortDevice), nil
	case w.half == nil || w.half.Peer == nil:
		link = native.Served(w.spec, broker.KindShm, nil)
	default:
		link = w.servedByInterfaces(func(int) string { return nodenet.Device })
	}
	if err := native.SetClasses(&link, w.spec); err != nil {
		return link, fmt.Errorf("link %s: %w", link.Name, err)
	}
	return link, nil
}

// servedByInterfaces is a link whose ports are packet sockets on interfaces of the half.
func (w *wish) servedByInterfaces(device func(end int) string) broker.Link {
	own := map[int]host.Netns{}
	for i, e := range w.spec.Ends {
		if e.Socket != "" {
			own[i] = host.Netns{Path: w.half.Name}
		}
	}
	link := native.Served(w.spec, broker.KindNetdev, own)
	for i := range link.Ends {
		e := &link.Ends[i]
		if e.Interface != "" {
			e.Interface = device(slices.IndexFunc(w.spec.Ends, func(s transport.End) bool { return s.Function == e.Function && s.Name == e.Port }))
		}
	}
	return link
}

// faults are what is wrong with claims. A fault of one concerns no other.
type faults map[types.UID]error

func (f faults) add(uid types.UID, err error) { f[uid] = errors.Join(f[uid], err) }

// specOf is a planned link without any of its ports on this node.
func specOf(name string, l *plan.Link) transport.Spec {
	spec := transport.Spec{Link: name, MTU: l.MTU, Messages: l.Messages, Shape: l.Shape}
	for _, e := range l.Ends {
		spec.Ends = append(spec.Ends, transport.End{
			Function: e.Function, Name: e.Port, MAC: e.MAC.HardwareAddr(), IP: e.IP, Queues: e.Queues, Face: e.Face, Hold: e.Hold, Shape: e.Shape,
		})
	}
	return spec
}

// applied is the outcome of apply.
type applied struct {
	faults  faults
	tunnels tunnels
}

// tunnels say where this node receives links from others, by link.
type tunnels struct {
	at      map[string]v1alpha1.Tunnel
	unknown map[string]bool            // links that may have one
	over    map[string]string          // the transport behind a link's ports here
	to      map[string]v1alpha1.Tunnel // where links that are served send to another node
	wrong   map[string]map[int]string  // what of a link's ports is not as it was made, by end
}

// apply makes the broker serve exactly the links of which libdray opens a port on this node, and
// dray-net exactly the halves. It changes nothing at a link that is as it should be. Halves are
// made before the broker's links move to them, and removed after these have left them.
func (l *links) apply(ctx context.Context, all []claims.Claim) (applied, error) {
	client, err := l.broker(ctx)
	if err != nil {
		return applied{}, err
	}
	status, err := client.Status(ctx)
	if err != nil {
		return applied{}, err
	}
	wishes, found := l.wanted(all)
	received := l.makeHalves(ctx, all, wishes, found)
	l.switchLinks(ctx, all, wishes, received, found)
	l.arrange(ctx, all, wishes, found)
	for _, s := range status {
		if w := wishes[s.Name]; w == nil || !w.brokered() {
			l.log.Info("link removed", "link", s.Name)
			err = errors.Join(err, client.Remove(ctx, s.Name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wishes)) {
		w := wishes[name]
		received.over[name] = w.transport(received)
		if !w.brokered() {
			received.sends(name, w)
			continue
		}
		i := slices.IndexFunc(status, func(s broker.LinkStatus) bool { return s.Name == name })
		if i >= 0 && w.unknown && !w.bridged() {
			continue
		}
		if i >= 0 && w.faulty && status[i].Kind == broker.KindShm {
			received.over[name] = shm.Name
			continue
		}
		link, fault := w.served()
		if fault == nil {
			fault = l.serve(ctx, client, link, i >= 0)
		}
		if fault != nil {
			found.blame(all, name, bothEnds, fault)
			continue
		}
		received.sends(name, w)
	}
	if err == nil {
		err = l.pruneHalves(ctx, wishes)
	}
	return applied{found, received}, err
}

// sends notes where a link sends to another node, if it does.
func (t tunnels) sends(name string, w *wish) {
	if w.unknown || w.faulty {
		return
	}
	switch {
	case w.half != nil && w.half.Peer != nil:
		t.to[name] = v1alpha1.Tunnel{Address: w.half.Peer.Addr.String(), VNI: w.half.Peer.VNI}
	case w.switched != nil && w.switched.Peer != nil:
		t.to[name] = v1alpha1.Tunnel{Address: w.switched.Peer.Addr.String(), VNI: w.switched.Peer.VNI}
	}
}

// makeHalves makes the halves that are wished for, and returns where this node receives.
// A new link without its half waits as if its other end had not come: a pod should start
// all the same. The ports of a bridged link are in its half, so then there are none.
func (l *links) makeHalves(ctx context.Context, all []claims.Claim, wishes map[string]*wish, found faults) tunnels {
	received := tunnels{map[string]v1alpha1.Tunnel{}, map[string]bool{}, map[string]string{}, map[string]v1alpha1.Tunnel{}, map[string]map[int]string{}}
	if halves := halvesOf(wishes); len(halves) > 0 {
		made := l.askHalves(ctx, halves, received, func(name string, end int, fault error) {
			if w := wishes[name]; w.bridged() {
				w.faulty = true
				found.blame(all, name, end, fault)
			}
		})
		l.noteChanges(made, wishes, received)
	}
	l.wrong = received.wrong
	for name, w := range wishes {
		if _, made := received.at[name]; w.half != nil && w.half.Tunnel == nodenet.TunnelWanted && !made {
			w.half.Peer, w.unknown = nil, true
		}
		if w.unknown {
			received.unknown[name] = true
		}
	}
	return received
}

// noteChanges reports what somebody has changed at ports: at once if it is undone, else in the
// status of claims.
func (l *links) noteChanges(made []nodenet.Made, wishes map[string]*wish, received tunnels) {
	for name, w := range wishes {
		if w.half != nil {
			received.wrong[name] = l.wrong[name]
		}
	}
	for _, m := range made {
		if m.Error == "" {
			received.wrong[m.Name] = m.Wrong
		}
		for end, text := range m.Again {
			note := fmt.Sprintf("link %s: port %s %s: it is made again", m.Name, wishes[m.Name].spec.Ends[end].Port(), text)
			l.log.Warn(note)
			l.warn.again(note)
		}
	}
}

// bothEnds stands for every port of a link.
const bothEnds = -1

// askHalves has dray-net make halves. It notes the tunnels, and reports why ports could not be made.
func (l *links) askHalves(ctx context.Context, halves []nodenet.Half, received tunnels, report func(name string, end int, fault error)) []nodenet.Made {
	info, err := l.net.Info(ctx)
	var made []nodenet.Made
	if err == nil {
		made, err = l.net.Apply(ctx, halves, false)
	}
	if err != nil {
		l.log.Error("halves of links", "error", err)
		for _, h := range halves {
			report(h.Name, bothEnds, fmt.Errorf("link %s: %w; look at the pod dray-net of this node", h.Name, err))
		}
	}
	for _, m := range made {
		for end, text := range m.Faults {
			report(m.Name, end, errors.New(text))
		}
		if m.Error != "" {
			l.log.Error("half of a link", "link", m.Name, "error", m.Error)
			report(m.Name, bothEnds, fmt.Errorf("link %s: %s", m.Name, m.Error))
			continue
		}
		if m.VNI > 0 {
			received.at[m.Name] = v1alpha1.Tunnel{Address: info.Addr.String(), VNI: m.VNI}
		}
	}
	return made
}

// pruneHalves removes halves that no link needs any more. A node without dray-net has none.
func (l *links) pruneHalves(ctx context.Context, wishes map[string]*wish) error {
	for _, w := range wishes {
		if w.unknown && !w.bridged() && w.switched == nil {
			return nil // it may have one
		}
	}
	_, err := l.net.Apply(ctx, halvesOf(wishes), true)
	if errors.Is(err, nodenet.ErrAbsent) {
		return nil
	}
	return err
}

func halvesOf(wishes map[string]*wish) []nodenet.Half {
	halves := []nodenet.Half{}
	for _, name := range slices.Sorted(maps.Keys(wishes)) {
		if h := wishes[name].half; h != nil {
			halves = append(halves, *h)
		}
	}
	return halves
}

// blame adds the fault of an end of a link, or of both, to the claims of its ports.
func (f faults) blame(all []claims.Claim, link string, end int, fault error) {
	for i := range all {
		for j := range all[i].Ports {
			p := &all[i].Ports[j]
			if linkOf(&all[i], p) == link && (end == bothEnds || end == p.End()) {
				f.add(all[i].UID, fault)
			}
		}
	}
}

// serve adds a link, or moves it if one of its ports has come or gone.
func (l *links) serve(ctx context.Context, client *broker.Client, want broker.Link, served bool) error {
	added := client.Add(ctx, want)
	if added == nil {
		if !served {
			l.log.Info("link added", "link", want.Name)
		}
		return nil
	}
	if !served {
		return added
	}
	moved := client.Relink(ctx, want)
	if moved == nil {
		l.log.Info("link moved", "link", want.Name)
		return nil
	}
	// A claim changed while no daemon ran, and its port has another socket now.
	l.log.Info("link made again", "link", want.Name, "because", moved)
	if err := client.Remove(ctx, want.Name); err != nil {
		return err
	}
	return client.Add(ctx, want)
}

var errNoBroker = errors.New("the broker of this node does not answer, so no port can be made; look at the pod dray-broker of this node")

// Patience with a broker that is about to start again.
const (
	brokerPatience = 15 * time.Second
	brokerPause    = 50 * time.Millisecond
)

// broker waits for the node's broker.
func (l *links) broker(ctx context.Context) (*broker.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	for {
		client, err := broker.Dial(l.dir)
		if err == nil {
			return client, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", errNoBroker, err)
		case <-time.After(brokerPause):
		}
	}
}

// status is what the broker has now. It does not wait for a broker that starts.
func (l *links) status(ctx context.Context) ([]broker.LinkStatus, error) {
	client, err := broker.Dial(l.dir)
	if err != nil {
		return nil, err
	}
	return client.Status(ctx)
}
