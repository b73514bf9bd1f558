// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"encoding/json"
	"net/netip"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/claims"
)

// peers knows from the status of chains on which node each end of a link is, and which
// claim is which instance.
type peers struct {
	node  string
	store atomic.Pointer[cache.Store] // of *v1alpha1.Chain, with only their status; nil: not synced yet
}

// elsewhere is the other end of a link if that is on another node.
type elsewhere struct {
	tunnel *v1alpha1.Tunnel // nil: not known yet
}

// chains is the resource of Chain.
var chains = schema.GroupVersionResource{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: "chains"}

// watch follows all chains until ctx ends, and calls changed after each change. It
// returns once the present state is known.
func (p *peers) watch(ctx context.Context, client dynamic.Interface, changed func()) error {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, metav1.NamespaceAll, nil)
	informer := factory.ForResource(chains)
	if err := informer.Informer().SetTransform(onlyStatus); err != nil {
		return err
	}
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	store := informer.Informer().GetStore()
	p.store.Store(&store)
	changed()
	return ctx.Err()
}

// onlyStatus reads what peers keeps of a chain.
func onlyStatus(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	slim := &v1alpha1.Chain{ObjectMeta: metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName(), ResourceVersion: u.GetResourceVersion()}}
	text, err := json.Marshal(u.Object["status"])
	if err != nil || json.Unmarshal(text, &slim.Status) != nil {
		slim.Status = v1alpha1.ChainStatus{} // the API server has checked it against the schema
	}
	return slim, nil
}

// instance is the function that a claim has in a chain, as the operator chose it; "" if it
// has chosen none, or the chain is not known.
func (p *peers) instance(namespace, chain string, claim types.UID) string {
	status := p.chain(namespace, chain)
	if status == nil {
		return ""
	}
	for _, i := range status.Instances {
		if i.UID == claim {
			return i.Function
		}
	}
	return ""
}

// chain is the status of a chain, which nobody may change; nil if it is not known.
func (p *peers) chain(namespace, name string) *v1alpha1.ChainStatus {
	store := p.store.Load()
	if store == nil {
		return nil
	}
	object, _, err := (*store).GetByKey(namespace + "/" + name)
	if c, ok := object.(*v1alpha1.Chain); ok && err == nil {
		return &c.Status
	}
	return nil
}

// link is what the chain's status says of a port's link; nil if nothing.
func (p *peers) link(c *claims.Claim, port *claims.Port) *v1alpha1.LinkStatus {
	status := p.chain(c.Namespace, port.Chain)
	if status == nil {
		return nil
	}
	for i := range status.Links {
		if status.Links[i].Name == port.Link.Name {
			return &status.Links[i]
		}
	}
	return nil
}

// limit replaces what claims say is required of their links by what their chains require now.
func (p *peers) limit(all []claims.Claim) {
	for i := range all {
		for j := range all[i].Ports {
			port := &all[i].Ports[j]
			if l := p.link(&all[i], port); l != nil && l.Limits != nil {
				limitPort(port, l.Limits)
			}
		}
	}
}

// move gives the links of a claim the transports that their chains want now, and reports
// whether one has changed. A link that cannot have it stays as it is.
func (p *peers) move(c *claims.Claim) (changed bool) {
	for i := range c.Ports {
		port := &c.Ports[i]
		l := p.link(c, port)
		if l == nil || l.Local == "" || l.Local == port.Link.Transport {
			continue
		}
		if moved, err := fleet.Moved(port.Link, l.Local); err == nil && checkLink(&moved) == nil {
			port.Link, changed = moved, true
		}
	}
	return changed
}

func limitPort(port *claims.Port, limits *v1alpha1.Limits) {
	var now plan.Limits
	if json.Unmarshal([]byte(limits.Text), &now) != nil {
		return // of an operator of another release
	}
	port.LimitsOf, port.Link = limits.Generation, port.Link.With(now)
	if port.Across != nil {
		across := port.Across.With(now)
		port.Across = &across
	}
}

// of is the other end of a port's link if that is on another node, otherwise nil. known is
// false if the chain's status does not say where the ends are.
func (p *peers) of(c *claims.Claim, port *claims.Port) (peer *elsewhere, known bool) {
	l := p.link(c, port)
	if l == nil {
		return nil, false
	}
	return p.otherEnd(l, port), true
}

// otherEnd is the end of a link that is not the port, if it is on another node and the
// port itself is still on this one.
func (p *peers) otherEnd(l *v1alpha1.LinkStatus, port *claims.Port) (peer *elsewhere) {
	for _, e := range l.Ends {
		switch own := e.Function == port.Function && e.Port == port.Port; {
		case own && e.Node != p.node:
			return nil
		case !own && e.Node != "" && e.Node != p.node:
			peer = &elsewhere{tunnel: e.Tunnel}
		}
	}
	return peer
}

// address is where the other node receives; false if it is unknown.
func (e *elsewhere) address() (netip.Addr, bool) {
	if e.tunnel == nil {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(e.tunnel.Address)
	return a, err == nil && a.Is4() && e.tunnel.VNI > 0
}
