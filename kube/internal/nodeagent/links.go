// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/native"
	"github.com/drayage/dray/internal/link/shm"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/kube/internal/claims"
)

// links keeps the broker's links as the claims of this node want them.
type links struct {
	dir   string // of the broker
	ports func(types.UID) string
	log   *slog.Logger
}

// linkOf is the name at the broker of the link of a claim's port.
func linkOf(c *claims.Claim, p *claims.Port) string {
	return c.Namespace + "/" + p.Chain + "/" + p.Link.Name
}

// checkLink refuses a link that this node cannot make.
func checkLink(l *plan.Link) error {
	if l.Transport != shm.Name || len(l.Ends) != 2 {
		return fmt.Errorf("link %s has transport %q and %d ends: nodes make only links of shared memory between two native ports so far",
			l.Name, l.Transport, len(l.Ends))
	}
	for _, e := range l.Ends {
		if e.Backend != plan.BackendShm {
			return fmt.Errorf("link %s: port %s is not native", l.Name, e)
		}
	}
	return nil
}

// wanted are the links that the claims ask for, by name. A port whose claim is
// not on this node has no socket. Claims of different plans of one link cannot
// be joined: the oldest decides, and the others are refused, by UID.
func (l *links) wanted(all []claims.Claim) (map[string]broker.Link, faults) {
	first := map[string]*claims.Port{}
	specs := map[string]transport.Spec{}
	refused := faults{}
	for i := range all {
		c := &all[i]
		for j := range c.Ports {
			p := &c.Ports[j]
			name := linkOf(c, p)
			if first[name] == nil {
				first[name], specs[name] = p, specOf(name, &p.Link)
			}
			if !reflect.DeepEqual(first[name].Link, p.Link) {
				refused.add(c.UID, fmt.Errorf("link %s was planned anew after its other pod started: delete that pod, too", p.Link.Name))
				continue
			}
			end := &specs[name].Ends[p.End()]
			end.Socket, end.User = filepath.Join(l.ports(c.UID), p.Port), c.User
		}
	}
	served := map[string]broker.Link{}
	for name, spec := range specs {
		served[name] = native.Served(spec, broker.KindShm, nil)
	}
	return served, refused
}

// faults are what is wrong with claims. A fault of one concerns no other.
type faults map[types.UID]error

func (f faults) add(uid types.UID, err error) { f[uid] = errors.Join(f[uid], err) }

// specOf is a planned link without any of its ports on this node.
func specOf(name string, l *plan.Link) transport.Spec {
	spec := transport.Spec{Link: name, MTU: l.MTU, Messages: l.Messages}
	for _, e := range l.Ends {
		spec.Ends = append(spec.Ends, transport.End{
			Function: e.Function, Name: e.Port, MAC: e.MAC.HardwareAddr(), IP: e.IP, Queues: e.Queues, Face: e.Face, Hold: e.Hold,
		})
	}
	return spec
}

// apply makes the broker serve exactly the links that the claims ask for. It
// changes nothing at a link that is as it should be.
func (l *links) apply(ctx context.Context, all []claims.Claim) (faults, error) {
	client, err := l.broker(ctx)
	if err != nil {
		return nil, err
	}
	status, err := client.Status(ctx)
	if err != nil {
		return nil, err
	}
	wanted, found := l.wanted(all)
	for _, s := range status {
		if _, ok := wanted[s.Name]; !ok {
			l.log.Info("link removed", "link", s.Name)
			err = errors.Join(err, client.Remove(ctx, s.Name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		served := slices.ContainsFunc(status, func(s broker.LinkStatus) bool { return s.Name == name })
		if fault := l.serve(ctx, client, wanted[name], served); fault != nil {
			found.blame(all, name, fault)
		}
	}
	return found, err
}

// blame adds the fault of a link to the claims of its ports.
func (f faults) blame(all []claims.Claim, link string, fault error) {
	for i := range all {
		for j := range all[i].Ports {
			if linkOf(&all[i], &all[i].Ports[j]) == link {
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
			return nil, fmt.Errorf("the broker of this node does not answer, so no port can be made; look at the pod dray-broker of this node: %w", err)
		case <-time.After(brokerPause):
		}
	}
}
