// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/core/v1"

	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/claims"
)

// annotationWoken is put on a pod that waits for this driver.
const annotationWoken = "drayage.io/woken"

// The times of waking.
const (
	wakeEvery = 2 * time.Second
	// wakeAgain is how long a pod is left alone at first; it may just wait for another
	// pod to end. After the second time that doubles, and once more after the third.
	wakeAgain = 5 * time.Second
	wakeOften = 3
)

// waker makes the kubelet look again at pods whose claims it could not
// prepare: no driver was registered, the API server did not know yet that the
// pod's claim is for this node, or the kubelet hung up on a driver that it had
// just found, and so never saw what it prepared. The kubelet itself would try
// again only after 60 to 90 s; any change of the pod makes it try at once.
type waker struct {
	agent *Agent
	pods  listers.PodLister
	seen  map[types.UID]waiting
}

// waiting is what is known of a pod that waits.
type waiting struct {
	since time.Time // when it was first seen, or last woken
	woken int       // how often it was woken, at most wakeOften
	other bool      // it waits for another driver
}

// wakeWaitingPods wakes pods once the kubelet knows the driver, until ctx ends.
func (a *Agent) wakeWaitingPods(ctx context.Context) {
	onNode := informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName=" + a.o.Node })
	factory := informers.NewSharedInformerFactoryWithOptions(a.o.Client, 0, onNode)
	w := &waker{agent: a, pods: factory.Core().V1().Pods().Lister(), seen: map[types.UID]waiting{}}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for !a.isRegistered() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
	w.wake(ctx, 0)
	every(ctx, wakeEvery, func(ctx context.Context) { w.wake(ctx, wakeAgain) })
}

// wake changes each pod of this node that has waited for that long.
func (w *waker) wake(ctx context.Context, patience time.Duration) {
	prepared, err := w.agent.store.List(ctx)
	if err != nil {
		w.agent.logged("wake waiting pods", err)
		return
	}
	all, err := w.pods.List(labels.Everything())
	if err != nil {
		w.agent.logged("wake waiting pods", err)
		return
	}
	now, seen := w.agent.now(), map[types.UID]waiting{}
	for _, p := range all {
		if !waits(p, prepared) {
			continue
		}
		state, known := w.seen[p.UID]
		if !known {
			state = waiting{since: now, other: !w.concerned(ctx, p)}
		}
		if !state.other && now.Sub(state.since) >= patience<<max(state.woken-1, 0) {
			w.agent.logged("wake pod "+p.Namespace+"/"+p.Name, w.change(ctx, p))
			state.since, state.woken = now, min(state.woken+1, wakeOften)
		}
		seen[p.UID] = state
	}
	w.seen = seen
}

// concerned reports whether a pod waits for this driver, also if that cannot be
// known.
func (w *waker) concerned(ctx context.Context, p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.ResourceClaims, func(r corev1.PodResourceClaim) bool {
		name := claimName(p, r)
		if name == "" {
			return false
		}
		c, err := w.agent.o.Client.ResourceV1().ResourceClaims(p.Namespace).Get(ctx, name, metav1.GetOptions{})
		return err != nil || hasDevice(c)
	})
}

// change annotates a pod.
func (w *waker) change(ctx context.Context, p *corev1.Pod) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, annotationWoken, w.agent.now().UTC().Format(time.RFC3339Nano))
	_, err := w.agent.o.Client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return err
}

// hasDevice reports whether a claim has a device of this driver.
func hasDevice(c *resourcev1.ResourceClaim) bool {
	return c.Status.Allocation != nil && slices.ContainsFunc(c.Status.Allocation.Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool {
		return r.Driver == v1alpha1.Driver
	})
}

// waits reports whether a pod may need a driver: to start, also again after a
// power cut, or to end.
func waits(p *corev1.Pod, prepared []claims.Claim) bool {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return false
	}
	named, known := false, false
	for _, r := range p.Spec.ResourceClaims {
		name := claimName(p, r)
		named = named || name != ""
		known = known || slices.ContainsFunc(prepared, func(c claims.Claim) bool { return c.Namespace == p.Namespace && c.Name == name })
	}
	if p.DeletionTimestamp != nil {
		return known
	}
	return named && (!known || !hasSandbox(p))
}

// hasSandbox reports whether the kubelet got so far as to make the pod's
// sandbox, which it does once all claims are prepared.
func hasSandbox(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionTrue
	})
}
