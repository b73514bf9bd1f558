// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"fmt"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/claims"
)

// condition is a condition of an allocated device.
type condition struct {
	Type, Status, Reason, Message string
	since                         time.Time // of the status
}

// report is what was last written to the status of a claim.
type report struct {
	at         time.Time
	conditions map[string][]condition // by request
}

// refreshEvery bounds how often figures are written if no verdict changes.
const refreshEvery = time.Minute

// report writes the addresses of a claim's ports and the verdicts on their
// links to the claim's status. Without that the pod works all the same, so an
// error is only logged.
func (a *Agent) report(ctx context.Context, c *claims.Claim, verdicts map[string][]verdict.Verdict) {
	now := report{at: a.now(), conditions: map[string][]condition{}}
	for i := range c.Ports {
		p := &c.Ports[i]
		now.conditions[p.Request] = conditionsOf(p, verdicts[linkOf(c, p)])
	}
	a.told.Lock()
	before, known := a.told.claims[c.UID]
	a.told.Unlock()
	if known && !worthWriting(before, now) {
		return
	}
	now.date(before)
	if err := a.writeStatus(ctx, c, now); err != nil {
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("%w; the role of dray-node needs the verb associated-node:update on resourceclaims/driver %s", err, v1alpha1.Driver)
		}
		a.logged("status of claim "+c.Namespace+"/"+c.Name, err)
		return
	}
	a.told.Lock()
	a.told.claims[c.UID] = now
	a.told.Unlock()
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
		return condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}
	}
	words := func(c condition) condition { return condition{Type: c.Type, Status: c.Status, Reason: c.Reason} }
	old := now.at.Sub(before.at) >= refreshEvery
	return before.differs(now, words) || old && before.differs(now, figures)
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
// each requirement of its link.
func conditionsOf(p *claims.Port, verdicts []verdict.Verdict) []condition {
	all := []condition{{Type: v1alpha1.ConditionReady, Status: string(metav1.ConditionTrue), Reason: v1alpha1.ReasonReady, Message: "the port can be opened"}}
	for _, v := range verdicts {
		all = append(all, judged(v))
	}
	for _, e := range p.Link.Evidence {
		if !slices.ContainsFunc(all, func(c condition) bool { return c.Type == e.Requirement }) {
			all = append(all, condition{Type: e.Requirement, Status: string(metav1.ConditionUnknown), Reason: v1alpha1.ReasonNotMeasured,
				Message: "required: " + e.Required + "; no traffic has been measured yet"})
		}
	}
	return all
}

// judged is one verdict as a condition.
func judged(v verdict.Verdict) condition {
	c := condition{Type: v.Requirement, Status: string(metav1.ConditionUnknown), Reason: v1alpha1.ReasonNotMeasurable}
	switch v.Verdict {
	case verdict.Met:
		c.Status, c.Reason = string(metav1.ConditionTrue), v1alpha1.ReasonMet
	case verdict.Missed:
		c.Status, c.Reason = string(metav1.ConditionFalse), v1alpha1.ReasonMissed
	}
	c.Message = "required: " + v.Required.Text
	if v.Measured.Value != nil {
		c.Message += fmt.Sprintf("; measured: %s; bound: %s; basis: %s", v.Measured.Text, v.Bound.Text, v.Basis)
	}
	if c.Status != string(metav1.ConditionTrue) {
		c.Message += "; " + v.Reason
	}
	if v.Needs != "" {
		c.Message += "; needs: " + v.Needs
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
		if err != nil {
			return err
		}
		if now.UID != c.UID {
			return nil // another claim has the name by now; Collect will see it
		}
		now.Status.Devices = slices.DeleteFunc(now.Status.Devices, func(d resourcev1.AllocatedDeviceStatus) bool { return d.Driver == v1alpha1.Driver })
		for i := range c.Ports {
			p := &c.Ports[i]
			now.Status.Devices = append(now.Status.Devices, deviceStatus(p, r.conditions[p.Request]))
		}
		_, err = api.UpdateStatus(ctx, now, metav1.UpdateOptions{FieldManager: fieldManager})
		return err
	})
}

// deviceStatus is the status of one port: its name, addresses and conditions.
func deviceStatus(p *claims.Port, conditions []condition) resourcev1.AllocatedDeviceStatus {
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
	for _, c := range conditions {
		d.Conditions = append(d.Conditions, metav1.Condition{
			Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message, LastTransitionTime: metav1.NewTime(c.since),
		})
	}
	return d
}
