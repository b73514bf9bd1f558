// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

/*
The chain of these tests:

	            ┌── w-0 ── pod of worker-0
	pod hub ────┤    …
	(receives)  └── w-3 ── pod of worker-3 (sends)
*/
const workers = `
apiVersion: drayage.io/v1alpha1
kind: Chain
metadata: {name: f1}
spec:
  functions:
  - {name: hub, ports: [{name: w, face: native}]}
  - {name: worker, instances: 4, ports: [{name: hub, face: native}]}
  links:
  - {name: w, ends: [hub.w, worker.hub], requires: {latency: 100ms, percentile: 90}}
`

// hub is a pod with a container for each port, so that each has a log of its own.
func hub(node string) string {
	p := pod{name: "hub", function: "hub", command: sleeps, hostUsers: true, node: node}.manifest()
	head, container, _ := strings.Cut(p, "  - name: c\n")
	for i := range 4 {
		one := strings.Replace(container, fmt.Sprintf("%q", sleeps), fmt.Sprintf(`"exec draygen sink --port dray:w-%d --reflect --check"`, i), 1)
		head += fmt.Sprintf("  - name: w-%d\n", i) + one
	}
	return head
}

// worker is a Deployment or StatefulSet of pods that send. One whose draygen has been ended
// does not send again: its result stays.
// fields are those of the object's spec, separated by semicolons.
func worker(kind, fields, node string) string {
	const command = "[ -e /dev/shm/sent ] && " + sleeps + "; : >/dev/shm/sent; exec draygen ping --port dray:hub --rate 1000pps --size 200 --check --peer-timeout 180s"
	p := pod{name: "worker", function: "worker", command: command, hostUsers: true, node: node, restart: "Always"}.manifest()
	_, spec, _ := strings.Cut(p, "spec:\n")
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: %s
metadata: {name: worker}
spec:
  %s
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker, chain: f1}}
    spec:%s`, kind, strings.ReplaceAll(fields, "; ", "\n  "), strings.ReplaceAll("\n"+spec, "\n", "\n    "))
}

// instances are the pods of a chain's instances, once the status names so many of them.
func (c *cluster) instances(n int) map[string]string {
	c.t.Helper()
	var pods map[string]string
	c.until(fmt.Sprintf("%d instances", n), func() error {
		chain, err := c.chain()
		if err != nil {
			return err
		}
		pods = map[string]string{}
		idle := 0
		for _, l := range chain.Status.Links {
			if l.Idle {
				idle++
			} else {
				pods[l.Ends[1].Function] = l.Ends[1].Pod
			}
		}
		if ready := condition(chain.Status.Conditions, v1alpha1.ConditionReady); ready.Status != metav1.ConditionTrue {
			return errors.New(ready.Message)
		}
		if want := fmt.Sprintf("%d/%[1]d", n); chain.Status.Ready != want || len(pods) != n || idle != 4-n {
			return fmt.Errorf("%s links are ready, %d idle", chain.Status.Ready, idle)
		}
		return nil
	})
	return pods
}

// exchange waits until each worker and the hub have had packets from each other.
func (c *cluster) exchange(pods map[string]string) {
	c.t.Helper()
	for function, pod := range pods {
		c.flowsTo("hub", "hub.w-"+strings.TrimPrefix(function, "worker-"))
		c.flowsTo(pod, function+".hub")
	}
}

// A Deployment is scaled up and down, and the worker that stays loses no packet.
func TestADeploymentOfWorkers(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: TestAStatefulSetKeepsItsAddresses shows that instances work; run make test-kube")
	}
	c := newCluster(t)
	c.apply(workers)
	c.apply(hub("n1"))
	c.apply(worker("Deployment", "replicas: 1", ""))
	c.scale(1)
	first := c.instances(1)
	stays := first["worker-0"]
	c.exchange(first)
	c.in("annotate", "pod", stays, "controller.kubernetes.io/pod-deletion-cost=100")
	for _, n := range []int{4, 1, 2, 1} {
		c.scale(n)
		pods := c.instances(n)
		if pods["worker-0"] != stays {
			t.Errorf("instance 0 went from pod %s to %s", stays, pods["worker-0"])
		}
		c.exchange(pods)
		t.Logf("%d workers; kubectl get chains:\n%s", n, c.in("get", "chains"))
	}
	c.terminate(stays)
	var sender result
	c.until("the result of "+stays, func() error {
		_, err := c.try("-n", c.namespace, "logs", stays, "--previous")
		return err
	})
	sender = c.printed(stays, "--previous")
	c.terminate("hub", "-c", "w-0")
	c.until("the result of the hub", func() error { return c.prints(`"event":"result"`, "logs", "hub", "-c", "w-0") })
	receiver := c.printed("hub", "-c", "w-0")
	if sender.Sent == 0 || receiver.Received != sender.Sent || receiver.Lost+receiver.Corrupt+receiver.Duplicates+receiver.Reordered+sender.Lost != 0 {
		t.Errorf("sent %+v, received %+v", sender, receiver)
	}
	t.Logf("%d packets, %d lost", sender.Sent, receiver.Lost)
	c.in("delete", "deployment/worker", "pod/hub")
	c.until("clean", c.left)
}

// scale waits until a Deployment has exactly so many pods.
func (c *cluster) scale(n int) {
	c.t.Helper()
	c.in("scale", "deployment/worker", fmt.Sprintf("--replicas=%d", n))
	c.in("rollout", "status", "deployment/worker", "--timeout", patience.String())
	c.until(fmt.Sprintf("%d workers", n), func() error {
		pods, err := c.try("-n", c.namespace, "get", "pods", "-l", "app=worker", "-o", "name")
		if err == nil && len(strings.Fields(pods)) != n {
			err = fmt.Errorf("%s", pods)
		}
		return err
	})
}

// A pod of a StatefulSet that is replaced has the same port, whichever others are free.
func TestAStatefulSetKeepsItsAddresses(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.awaitNetwork()
	c.apply(workers)
	c.apply(hub("n1"))
	c.apply(worker("StatefulSet", "replicas: 2; ordinals: {start: 1}; podManagementPolicy: Parallel", "n2"))
	want := map[string]string{"worker-1": "worker-1", "worker-2": "worker-2"}
	if got := c.instances(2); !reflect.DeepEqual(got, want) {
		t.Fatalf("instances %v, want %v", got, want)
	}
	before := c.networkData("worker-2")
	c.in("delete", "pod", "worker-2")
	c.ready("worker-2")
	if got := c.instances(2); !reflect.DeepEqual(got, want) {
		t.Fatalf("instances %v, want %v", got, want)
	}
	c.exchange(want)
	if after := c.networkData("worker-2"); before.HardwareAddress == "" || len(before.IPs) != 1 || !reflect.DeepEqual(before, after) {
		t.Errorf("before %+v, after %+v", before, after)
	}
	t.Logf("%+v", before)
}

// networkData is what the claim of a pod says of its only port.
func (c *cluster) networkData(pod string) (data resourcev1.NetworkDeviceData) {
	c.t.Helper()
	c.until("addresses of "+pod, func() error {
		claim, err := c.claim(pod)
		if err != nil {
			return err
		}
		if len(claim.Status.Devices) != 1 || claim.Status.Devices[0].NetworkData == nil {
			return fmt.Errorf("%+v", claim.Status.Devices)
		}
		data = *claim.Status.Devices[0].NetworkData
		return nil
	})
	return data
}
