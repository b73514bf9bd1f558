// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/claims"
)

// condition is a condition of an allocated device.
type condition struct {
	Type, Status, Reason, Message string
	since                         time.Time // of the status
	limitsOf                      int64     // generation of the chain whose limits it is about
}

// report is what was last written to the status of a claim.
type report struct {
	at         time.Time
	conditions map[string][]condition     // by request
	tunnels    map[string]v1alpha1.Tunnel // likewise
	to         map[string]v1alpha1.Tunnel // likewise, of the other nodes
	over       map[string]string          // likewise, the transport behind the port
	kept       map[string]bool            // requests whose tunnel stays as the claim has it
}

// lacksVerb reports whether a role lacks missingVerb. The API server calls that an invalid
// object with a forbidden field.
func lacksVerb(err error) bool {
	var status apierrors.APIStatus
	if apierrors.IsForbidden(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return apierrors.IsForbidden(err)
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeForbidden && c.Field == "status.devices"
	})
}

// missingVerb is what a hand-made role often lacks.
const missingVerb = "the role of dray-node needs the verb associated-node:update on resourceclaims/driver " + v1alpha1.Driver

// refreshEvery bounds how often figures are written if no verdict changes.
const refreshEvery = time.Minute

// refusedFor is how long nothing is written after the API server has refused it for want of a verb.
const refusedFor = 20 * time.Second

// reportSoon has the status of all claims written where it has changed.
func (a *Agent) reportSoon() {
	select {
	case a.changed <- struct{}{}:
	default: // that is to come already
	}
}

// writePatience bounds a write to the API server, which may be silent.
const writePatience = 10 * time.Second

// reportAlways writes what has changed until ctx ends. Only this waits for the API server.
func (a *Agent) reportAlways(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.changed:
			a.reportAll(ctx)
		}
	}
}

// reportAll reports each claim, once it is known where this node receives its links.
func (a *Agent) reportAll(ctx context.Context) {
	if a.live.tunnels.Load() == nil {
		return
	}
	all, err := a.limited(ctx)
	if err != nil {
		a.logged("status of claims", err)
		return
	}
	for i := range all {
		each, cancel := context.WithTimeout(ctx, writePatience)
		a.report(each, &all[i])
		silent := each.Err() != nil
		cancel()
		if silent {
			return // the others would wait as long; the next round asks them again
		}
	}
}

// report writes the addresses of a claim's ports and the verdicts on their
// links to the claim's status. Without that the pod works all the same, so an
// error is only logged.
func (a *Agent) report(ctx context.Context, c *claims.Claim) {
	now := report{at: a.now(), conditions: map[string][]condition{}, tunnels: map[string]v1alpha1.Tunnel{}, to: map[string]v1alpha1.Tunnel{}, over: map[string]string{}, kept: map[string]bool{}}
	a.told.Lock()
	before, known := a.told.claims[c.UID]
	pointless := now.at.Sub(a.told.refused) < refusedFor
	a.told.Unlock()
	received := latest(a.live.tunnels)
	for i := range c.Ports {
		p := &c.Ports[i]
		link := linkOf(c, p)
		t, tunnel := received.at[link]
		if tunnel {
			now.tunnels[p.Request] = t
		}
		if t, sends := received.to[link]; sends {
			now.to[p.Request] = t
		}
		now.over[p.Request] = received.over[link]
		judged := latest(a.live.judged)[link]
		if received.unknown[link] { // the other node relies on what the claim says of the tunnel
			now.kept[p.Request], tunnel = true, judged.tunnel
		}
		verdicts, nothing := judged.of(tunnel, p)
		if why := notCounted(&p.Link); why != "" {
			verdicts, nothing = nil, why
		}
		now.conditions[p.Request] = conditionsOf(p, verdicts, nothing)
		if text := received.wrong[link][p.End()]; text != "" {
			now.conditions[p.Request][0] = changed(p, text)
		}
	}
	if known && !worthWriting(before, now) || pointless {
		return
	}
	now.date(before)
	if err := a.writeStatus(ctx, c, now); err != nil {
		if lacksVerb(err) {
			a.told.Lock()
			a.told.refused = now.at
			a.told.Unlock()
			a.warn.forbidden("ReportStatus", missingVerb+": claims do not show the addresses and verdicts of their ports")
			err = fmt.Errorf("%w; %s", err, missingVerb)
		}
		a.logged("status of claim "+c.Namespace+"/"+c.Name, err)
		return
	}
	a.told.Lock()
	a.told.claims[c.UID] = now
	a.told.Unlock()
}

// latest is what was stored last; the zero value if nothing was.
func latest[T any](p *atomic.Pointer[T]) (v T) {
	if stored := p.Load(); stored != nil {
		v = *stored
	}
	return v
}

// date gives each condition the time since when it has its status.
func (r *report) date(before report) {
	for request, all := range r.conditions {
		for i := range all {
			all[i].since = r.at
			for _, b := range before.conditions[request] {
				if b.Type == all[i].Type && b.Status == all[i].Status {
					all[i].since = b.since
				}
			}
		}
	}
}

// forget forgets what was written to a claim.
func (a *Agent) forget(uid types.UID) {
	a.told.Lock()
	defer a.told.Unlock()
	delete(a.told.claims, uid)
}

// worthWriting reports whether a verdict has changed, or figures are old.
func worthWriting(before, now report) bool {
	figures := func(c condition) condition {
		return condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, limitsOf: c.limitsOf}
	}
	words := func(c condition) condition {
		return condition{Type: c.Type, Status: c.Status, Reason: c.Reason, limitsOf: c.limitsOf}
	}
	old := now.at.Sub(before.at) >= refreshEvery
	return !maps.Equal(before.tunnels, now.tunnels) || !maps.Equal(before.to, now.to) || !maps.Equal(before.over, now.over) || before.differs(now, words) || old && before.differs(now, figures)
}

// differs compares two reports by a part of each condition.
func (r report) differs(other report, part func(condition) condition) bool {
	for request, all := range other.conditions {
		same := slices.EqualFunc(all, r.conditions[request], func(a, b condition) bool { return part(a) == part(b) })
		if !same {
			return true
		}
	}
	return false
}

// conditionsOf are the conditions of one port: that it is ready, and one for
// each requirement of its link. Without a verdict, it says why there is nothing.
func conditionsOf(p *claims.Port, verdicts []verdict.Verdict, nothing string) []condition {
	all := []condition{{Type: v1alpha1.ConditionReady, Status: string(metav1.ConditionTrue), Reason: v1alpha1.ReasonReady, Message: "the port can be opened"}}
	for _, v := range verdicts {
		all = append(all, judged(v))
	}
	for _, e := range p.Link.Evidence {
		if !slices.ContainsFunc(all, func(c condition) bool { return c.Type == e.Requirement }) {
			all = append(all, unjudged(e, nothing, notCounted(&p.Link) != ""))
		}
	}
	for i := range all {
		all[i].limitsOf = p.LimitsOf
	}
	return all
}

// changed is the condition Ready of a port that somebody has changed.
func changed(p *claims.Port, text string) condition {
	return condition{
		Type: v1alpha1.ConditionReady, Status: string(metav1.ConditionFalse), Reason: v1alpha1.ReasonChanged, limitsOf: p.LimitsOf,
		Message: fmt.Sprintf("the pod's interface %s %s: undo that, or replace the pod", p.Port, text),
	}
}

// unjudged is a requirement on which there is no verdict, and why. never: there will be none.
func unjudged(e plan.Evidence, why string, never bool) condition {
	c := condition{Type: e.Requirement, Status: string(metav1.ConditionUnknown), Reason: v1alpha1.ReasonNotMeasured}
	m := verdict.Message{Required: e.Required, Because: why}
	switch {
	case never:
		c.Reason, m.Needs = v1alpha1.ReasonNotMeasurable, "another transport, such as shm"
	case !verdict.Live(e.Requirement):
		c.Reason = v1alpha1.ReasonNotMeasurable
		m.Because, m.Needs = "the applications' own traffic cannot show what a link could do", "a measurement of its own, which nodes of a cluster do not make yet"
	}
	c.Message = m.String()
	return c
}

// judged is one verdict as a condition.
func judged(v verdict.Verdict) condition {
	c := condition{Type: v.Requirement, Status: string(metav1.ConditionUnknown), Reason: v1alpha1.ReasonNotMeasurable, Message: verdict.MessageOf(v).String()}
	switch v.Verdict {
	case verdict.Met:
		c.Status, c.Reason = string(metav1.ConditionTrue), v1alpha1.ReasonMet
	case verdict.Missed:
		c.Status, c.Reason = string(metav1.ConditionFalse), v1alpha1.ReasonMissed
	}
	return c
}

// writeStatus replaces this driver's part of a claim's status. A server-side
// apply would not do: it sorts the fields of the opaque parameters in the
// allocation, which the API server then takes for a change of an immutable field.
func (a *Agent) writeStatus(ctx context.Context, c *claims.Claim, r report) error {
	api := a.o.Client.ResourceV1().ResourceClaims(c.Namespace)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := api.Get(ctx, c.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && now.UID != c.UID {
			return nil // it is deleted, or another claim has the name by now; Collect will see it
		}
		if err != nil {
			return err
		}
		var own []resourcev1.AllocatedDeviceStatus
		for i := range c.Ports {
			own = append(own, deviceStatus(&c.Ports[i], r, now.Status.Devices))
		}
		now.Status.Devices = slices.DeleteFunc(now.Status.Devices, func(d resourcev1.AllocatedDeviceStatus) bool { return d.Driver == v1alpha1.Driver })
		now.Status.Devices = append(now.Status.Devices, own...)
		_, err = api.UpdateStatus(ctx, now, metav1.UpdateOptions{FieldManager: fieldManager})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// deviceStatus is the status of one port: its name, addresses, conditions, and where the
// node receives its link. That may stay as it was before.
func deviceStatus(p *claims.Port, r report, before []resourcev1.AllocatedDeviceStatus) resourcev1.AllocatedDeviceStatus {
	end := p.Link.Ends[p.End()]
	d := resourcev1.AllocatedDeviceStatus{
		Driver: v1alpha1.Driver, Pool: p.Pool, Device: p.Device,
		NetworkData: &resourcev1.NetworkDeviceData{InterfaceName: p.Port, HardwareAddress: string(end.MAC)},
	}
	if end.IP.IsValid() {
		d.NetworkData.IPs = []string{end.IP.String()}
	}
	if p.ShareID != nil {
		share := string(*p.ShareID)
		d.ShareID = &share
	}
	data := v1alpha1.PortData{Transport: r.over[p.Request]}
	if t, ok := r.tunnels[p.Request]; ok {
		data.Tunnel = &t
	}
	if t, ok := r.to[p.Request]; ok {
		data.Peer = &t
	}
	if data != (v1alpha1.PortData{}) {
		text, err := json.Marshal(data)
		if err != nil {
			panic("data of a port: " + err.Error()) // text and a number
		}
		d.Data = &runtime.RawExtension{Raw: text}
	}
	for _, b := range before {
		if r.kept[p.Request] && b.Driver == d.Driver && b.Pool == d.Pool && b.Device == d.Device && equality.Semantic.DeepEqual(b.ShareID, d.ShareID) {
			d.Data = b.Data
		}
	}
	for _, c := range r.conditions[p.Request] {
		d.Conditions = append(d.Conditions, metav1.Condition{
			Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message, LastTransitionTime: metav1.NewTime(c.since), ObservedGeneration: c.limitsOf,
		})
	}
	return d
}
