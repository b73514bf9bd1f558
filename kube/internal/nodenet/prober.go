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

// prober measures the links to other nodes.
type prober struct {
	log *slog.Logger

	mu     sync.Mutex
	probed map[string]*probed // by half
}

// probed is the measurement of one half.
type probed struct {
	tap     *tap // nil: it failed
	failure string
	session *probe.Session
}

// linksPerTick is how many links are probed at the full rate. More of them share it.
const linksPerTick = 32

// run sends and receives probes until ctx ends.
func (p *prober) run(ctx context.Context) {
	links := 0
	for host.Sleep(ctx, probe.Every*time.Duration(max(1, (links+linksPerTick-1)/linksPerTick))) == nil {
		links = p.step()
	}
}

// step takes and sends the probes of all links, and returns how many there are.
func (p *prober) step() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, one := range p.probed {
		if one.tap == nil {
			continue
		}
		if err := one.tap.step(one.session); err != nil {
			p.log.Error("a link is no longer measured", "half", name, "error", err)
			one.fail(err)
		}
	}
	return len(p.probed)
}

func (o *probed) fail(err error) {
	o.tap.close()
	o.tap, o.failure = nil, err.Error()
}

// measure makes a half be measured, if it is one end of a tunnel whose other end is known. The ends
// of interfaces are not: their bridge would pass probes on to pods.
func (p *prober) measure(h *half, want Half) {
	if h.vni == 0 || h.hub || want.Peer == nil || want.MTU < probe.MaxPayload {
		p.stop(want.Name)
		return
	}
	to, from := [6]byte(want.Peer.MAC.HardwareAddr()), [6]byte(want.MAC.HardwareAddr())
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.probed[want.Name]
	if one != nil && one.tap != nil && one.session.Goes(to, from) {
		return
	}
	if one != nil && one.tap != nil {
		one.tap.close()
	}
	one = &probed{session: probe.NewSession(to, from, rand.Uint64()|1)}
	p.probed[want.Name] = one
	var err error
	if one.tap, err = openTap(h.at(), Device); err != nil {
		one.tap, one.failure = nil, err.Error()
		p.log.Error("a link is not measured", "half", want.Name, "error", err)
	}
}

// stop ends the measurement of a half.
func (p *prober) stop(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.probed[name]; one != nil && one.tap != nil {
		one.tap.close()
	}
	delete(p.probed, name)
}

// since are the intervals of a half after the one with a number. A number of another epoch
// counts as none.
func (p *prober) since(q *measuredRequest) (*Measured, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.probed[q.Half]
	switch {
	case one == nil:
		return nil, errors.New("the half is not measured")
	case one.tap == nil:
		return nil, fmt.Errorf("the half is not measured: %s", one.failure)
	}
	m := &Measured{Epoch: one.session.Epoch()}
	if q.Epoch != m.Epoch {
		q.After = 0
	}
	m.Intervals = one.session.Since(q.After)
	return m, nil
}
