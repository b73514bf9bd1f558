// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/drayage/dray/kube/internal/claims"
)

// annotationWoken is put on a pod that waited for this driver.
const annotationWoken = "drayage.io/driver-registered"

// wakeWaitingPods makes the kubelet look again at each pod that could not
// start while no driver was registered. It would try again only after 60 to
// 90 s; any change of the pod makes it try at once.
func (a *Agent) wakeWaitingPods(ctx context.Context, status func() *registerapi.RegistrationStatus) {
	for registered := status(); registered == nil || !registered.PluginRegistered; registered = status() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
	a.logged("wake waiting pods", a.wake(ctx))
}

// wake changes each pod of this node that waits for the driver.
func (a *Agent) wake(ctx context.Context) error {
	prepared, err := a.store.List(ctx)
	if err != nil {
		return err
	}
	pods, err := a.o.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + a.o.Node})
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, annotationWoken, a.now().UTC().Format(time.RFC3339Nano))
	for i := range pods.Items {
		p := &pods.Items[i]
		if !waits(p, prepared) {
			continue
		}
		_, failed := a.o.Client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
		err = errors.Join(err, failed)
	}
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
