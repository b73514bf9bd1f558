// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/core/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/drayage/dray/kube/internal/claims"
)

// annotationWoken is put on a pod that waits for this driver.
const annotationWoken = "drayage.io/woken"

// The times of waking.
const (
	wakeEvery = 2 * time.Second
	// wakeAgain is how long a pod is left alone, first and after each time. It may just
	// wait for another pod to end.
	wakeAgain = 5 * time.Second
)

// waker makes the kubelet look again at pods whose claims it could not
// prepare: no driver was registered, or the API server did not know yet that
// the pod's claim is for this node. The kubelet itself would try again only
// after 60 to 90 s; any change of the pod makes it try at once.
type waker struct {
	agent *Agent
	pods  listers.PodLister
	seen  map[types.UID]time.Time // when a pod was first seen waiting, or last woken
}

// wakeWaitingPods wakes pods once the kubelet knows the driver, until ctx ends.
func (a *Agent) wakeWaitingPods(ctx context.Context, status func() *registerapi.RegistrationStatus) {
	onNode := informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName=" + a.o.Node })
	factory := informers.NewSharedInformerFactoryWithOptions(a.o.Client, 0, onNode)
	w := &waker{agent: a, pods: factory.Core().V1().Pods().Lister(), seen: map[types.UID]time.Time{}}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for registered := status(); registered == nil || !registered.PluginRegistered; registered = status() {
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
	now, waiting := w.agent.now(), map[types.UID]time.Time{}
	for _, p := range all {
		if !waits(p, prepared) {
			continue
		}
		since, known := w.seen[p.UID]
		if !known {
			since = now
		}
		if now.Sub(since) >= patience {
			w.agent.logged("wake pod "+p.Namespace+"/"+p.Name, w.change(ctx, p))
			since = now
		}
		waiting[p.UID] = since
	}
	w.seen = waiting
}

// change annotates a pod.
func (w *waker) change(ctx context.Context, p *corev1.Pod) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, annotationWoken, w.agent.now().UTC().Format(time.RFC3339Nano))
	_, err := w.agent.o.Client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return err
}

// waits reports whether a pod needs a driver: to start, also again after a
// power cut, or to end. A pod whose claims are prepared does not.
func waits(p *corev1.Pod, prepared []claims.Claim) bool {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return false
	}
	for _, r := range p.Spec.ResourceClaims {
		name := claimName(p, r)
		known := slices.ContainsFunc(prepared, func(c claims.Claim) bool { return c.Namespace == p.Namespace && c.Name == name })
		if name != "" && known == (p.DeletionTimestamp != nil) {
			return true
		}
	}
	return false
}
