// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
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
	pods, err := a.o.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + a.o.Node})
	if err != nil {
		a.logged("wake waiting pods", err)
		return
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, annotationWoken, a.now().UTC().Format(time.RFC3339Nano))
	for i := range pods.Items {
		p := &pods.Items[i]
		if !pending(p) {
			continue
		}
		_, err := a.o.Client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
		a.logged("wake pod "+p.Namespace+"/"+p.Name, err)
	}
}
