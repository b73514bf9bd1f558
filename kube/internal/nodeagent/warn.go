// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

// warner makes events about this daemon's own pod, in the daemon's own namespace: it may
// make none elsewhere. It does nothing if the pod is not known.
type warner struct {
	pod  *corev1.Pod
	sink events.EventBroadcaster
	to   events.EventRecorder
}

func newWarner(o *Options) *warner {
	if o.PodName == "" {
		return nil
	}
	w := &warner{pod: &corev1.Pod{}, sink: events.NewBroadcaster(&events.EventSinkImpl{Interface: o.Client.EventsV1()})}
	w.pod.Name, w.pod.Namespace, w.pod.UID = o.PodName, o.Namespace, o.PodUID
	w.to = w.sink.NewRecorder(scheme.Scheme, v1alpha1.Driver)
	return w
}

// start begins to write events, until ctx ends.
func (w *warner) start(ctx context.Context) error {
	if w == nil {
		return nil
	}
	if err := w.sink.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	return nil
}

// again says that a port was not as it was made, and is again.
func (w *warner) again(note string) {
	if w != nil {
		w.to.Eventf(w.pod, nil, corev1.EventTypeWarning, v1alpha1.ReasonChanged, "MakePort", "%s", note)
	}
}

// forbidden says that a role lacks something. Repeated, it becomes a series of one event.
func (w *warner) forbidden(action, note string) {
	if w != nil {
		w.to.Eventf(w.pod, nil, corev1.EventTypeWarning, "Forbidden", action, "%s", note)
	}
}
