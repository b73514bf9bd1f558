// SPDX-License-Identifier: Apache-2.0

package switchd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// again is the time until a round that failed is repeated.
const again = time.Second

// errStarting is what links have while Open vSwitch does not run.
const errStarting = "Open vSwitch is starting"

// worker gives Open vSwitch what is wanted. Only one goroutine has it.
type worker struct {
	*server
	running context.Context    // the ovs-vswitchd that has what is below; nil: none
	has     map[string]string  // what it was told of each link, by id
	doors   map[string]watched // by the name of the port
}

// watched is a door that is looked at.
type watched struct {
	door string
	stop func()
}

// work makes all links as they are wanted, again whenever something has changed, until ctx ends.
func (s *server) work(ctx context.Context) {
	w := &worker{server: s, doors: map[string]watched{}}
	defer func() {
		for _, d := range w.doors {
			d.stop()
		}
	}()
	retry := time.NewTimer(0)
	defer retry.Stop()
	last := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.kick:
		case <-retry.C:
		}
		s.mu.Lock()
		asked, wanted := s.asked, slices.Clone(s.wanted)
		s.mu.Unlock()
		errs, err := w.round(ctx, wanted)
		failed := len(errs) > 0 || err != nil
		if text := fmt.Sprint(err); text != last {
			if last = text; err != nil {
				s.o.Log.Warn("links are not as wanted", "error", err)
			}
		}
		s.mu.Lock()
		for name, why := range errs {
			if why != s.errs[name] {
				s.o.Log.Warn("link", "link", name, "error", why)
			}
		}
		for _, e := range s.wanted {
			if !slices.ContainsFunc(wanted, func(o entry) bool { return o.Name == e.Name }) {
				errs[e.Name] = errMaking // it was asked for during the round
			}
		}
		s.done, s.errs = asked, errs
		close(s.turn)
		s.turn = make(chan struct{})
		s.mu.Unlock()
		if failed {
			retry.Reset(again)
		}
	}
}

// round returns what is wrong with links, by name, and what is wrong whatever is wanted.
func (w *worker) round(ctx context.Context, wanted []entry) (map[string]string, error) {
	w.attendAll(ctx, wanted)
	running, ok := w.vswitchd.current()
	if !ok {
		return all(wanted, errStarting), nil // a round follows when it runs
	}
	ctx, cancel := while(ctx, running)
	defer cancel()
	if err := w.begin(ctx, running, wanted); err != nil {
		return all(wanted, err.Error()), err
	}
	errs, left := map[string]string{}, w.o.Memory<<20-otherMemory
	for i := range wanted {
		e := &wanted[i]
		err := w.room(e, left)
		if err == nil {
			left -= e.memory()
			err = w.make(ctx, e)
		}
		if err != nil {
			errs[e.Name] = err.Error()
		}
	}
	return errs, nil
}

func all(wanted []entry, why string) map[string]string {
	errs := map[string]string{}
	for _, e := range wanted {
		errs[e.Name] = why
	}
	return errs
}

// begin has Open vSwitch ready for links, and without any that is not wanted. One that has started
// again has what the database keeps, without flows, addresses and routes.
func (w *worker) begin(ctx context.Context, running context.Context, wanted []entry) error {
	if w.running != running {
		if err := w.ovs.setUnder(ctx, w.underlay); err != nil {
			return err
		}
		w.running, w.has = running, map[string]string{}
	}
	there, err := w.ovs.bridges(ctx)
	if err != nil {
		return err
	}
	for i := range wanted {
		delete(there, wanted[i].id())
	}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(there)) {
		delete(w.has, id)
		if err := w.ovs.vsctl(ctx, "--if-exists", "del-br", id); err != nil {
			errs = append(errs, err)
			continue
		}
		w.o.Log.Info("link removed", "bridge", id)
	}
	return errors.Join(errs...)
}

// otherMemory is what Open vSwitch takes of the memory of packets for itself, in bytes.
const otherMemory = 96 << 20

// room reports why a link cannot be made. left is what remains of the memory of packets.
func (w *worker) room(e *entry, left int) error {
	if lacks := e.memory() - left; lacks > 0 {
		return fmt.Errorf("it needs %d MiB more for packets than the switch has left of its %d: raise --memory of dray-switch, and its limit", (lacks+1<<20-1)>>20, w.o.Memory)
	}
	if e.crosses() {
		return w.underlay.room(e.MTU)
	}
	return nil
}

// make makes one link, if it is not as wanted already.
func (w *worker) make(ctx context.Context, e *entry) error {
	told := strings.Join(append(w.ovs.arguments(e, w.underlay), flows(e)...), " ")
	if w.has[e.id()] == told {
		return nil
	}
	delete(w.has, e.id()) // if this fails, a part may have changed
	if err := w.ovs.set(ctx, e, w.underlay); err != nil {
		return err
	}
	w.has[e.id()] = told
	w.o.Log.Info("link made", "link", e.Name, "bridge", e.id(), "vni", e.VNI, "crosses", e.crosses())
	return nil
}

// attendAll looks at the doors of all ports, and no longer at others. It needs no Open vSwitch.
func (w *worker) attendAll(ctx context.Context, wanted []entry) {
	doors := map[string]string{}
	for i := range wanted {
		for _, p := range wanted[i].Ports {
			doors[wanted[i].portName(p.End)] = p.Door
		}
	}
	for port, d := range w.doors {
		if doors[port] != d.door {
			d.stop()
			delete(w.doors, port)
			w.report(port, "")
		}
	}
	for port, door := range doors {
		if _, ok := w.doors[port]; ok {
			continue
		}
		looking, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			attend(looking, door, w.ovs.socket(port), func(fault string) { w.report(port, fault) })
		}()
		w.doors[port] = watched{door, func() { stop(); <-ended }}
	}
}
