// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/kube/internal/probe"
)

// prober measures links at their ports on this node.
type prober struct {
	log *slog.Logger

	mu     sync.Mutex
	probed map[portOf]*probed
}

// portOf is a port of a half.
type portOf struct {
	half string
	mac  [6]byte
}

// probed is the measurement at one port.
type probed struct {
	spot    spot
	place   place
	tap     *tap // nil: it failed
	failure string
	session *probe.Session
}

// place is an interface, which is another one if it is made again.
type place struct {
	netns uint64
	index int
}

func placeOf(ns host.Netns, device string) (place, error) {
	inode, err := ns.Inode()
	if err != nil {
		return place{}, err
	}
	state, err := ns.ReadLink(device)
	return place{inode, state.Index}, err
}

// portsPerTick is how many ports are probed at the full rate. More of them share it.
const portsPerTick = 32

// lookEvery is how often the prober looks whether pods have ended.
const lookEvery = 2 * time.Second

// run sends and receives probes until ctx ends.
func (p *prober) run(ctx context.Context) {
	ports, looked := 0, time.Now()
	for host.Sleep(ctx, probe.Every*time.Duration(max(1, (ports+portsPerTick-1)/portsPerTick))) == nil {
		ports = p.step()
		if time.Since(looked) > lookEvery {
			p.leavePods()
			looked = time.Now()
		}
	}
}

// step takes and sends the probes of all ports, and returns how many there are.
func (p *prober) step() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for port, one := range p.probed {
		if one.tap == nil {
			continue
		}
		if err := one.tap.step(one.session); err != nil {
			p.log.Error("a port is no longer measured", "half", port.half, "error", err)
			one.fail(err)
		}
	}
	return len(p.probed)
}

func (o *probed) fail(err error) {
	o.close()
	o.tap, o.failure = nil, err.Error()
}

func (o *probed) close() {
	if o.tap != nil {
		o.tap.close()
	}
}

// measure makes a port be measured. It changes nothing at one that is.
func (p *prober) measure(half string, at spot, ns host.Netns) {
	p.mu.Lock()
	defer p.mu.Unlock()
	port := portOf{half, at.From}
	before := p.probed[port]
	if before == nil {
		before = &probed{}
	}
	where, err := placeOf(ns, at.device)
	if err == nil && before.tap != nil && before.spot == at && before.place == where {
		return
	}
	before.close()
	one := &probed{spot: at, place: where, session: probe.NewSession(at.Pair, rand.Uint64()|1)}
	p.probed[port] = one
	if err == nil {
		one.tap, err = openTap(ns, at.device)
	}
	if err == nil {
		return
	}
	one.fail(err)
	if one.failure != before.failure {
		p.log.Error("a port is not measured", "half", half, "error", err)
	}
}

// keep ends the measurement of all ports of a half but these.
func (p *prober) keep(half string, spots []spot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := map[[6]byte]spot{}
	for _, at := range spots {
		wanted[at.From] = at
	}
	for port, one := range p.probed {
		if at, ok := wanted[port.mac]; port.half == half && !(ok && at.Pair == one.spot.Pair) {
			one.close()
			delete(p.probed, port)
		}
	}
}

// leavePods lets go of the network namespaces of pods that have ended. A tap would keep
// them as long as nobody else says so.
func (p *prober) leavePods() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.probed {
		if one.tap == nil || one.spot.pod == "" {
			continue
		}
		if now, err := (host.Netns{Path: one.spot.pod}).Inode(); err != nil || now != one.place.netns {
			one.fail(errPodEnded)
		}
	}
}

var errPodEnded = errors.New("the pod has ended")

// since are the intervals of a port after the one with a number. A number of another epoch
// counts as none.
func (p *prober) since(q *measuredRequest) (*Measured, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.probed[portOf{q.Half, address(q.MAC)}]
	switch {
	case one == nil:
		return nil, errors.New("the other end of the link is not known yet")
	case one.tap == nil:
		return nil, fmt.Errorf("the link is not measured: %s", one.failure)
	}
	m := &Measured{Epoch: one.session.Epoch()}
	if q.Epoch != m.Epoch {
		q.After = 0
	}
	m.Intervals = one.session.Since(q.After)
	return m, nil
}
