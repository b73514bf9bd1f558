// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/drayage/dray/internal/link/shm"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// The scheduler places no more on a node than its calibration proves: a pod for which too
// little is left waits until another one ends.
func TestACalibratedNodeTakesNoMoreThanItCarries(t *testing.T) {
	c := newCluster(t)
	const perPort = 3e6 // packets per second
	c.calibrate("n1", inventory.Calibration{Transport: shm.Name, Source: "run of " + c.namespace, PacketRate: perPort})
	total := c.device("n1").Capacity[v1alpha1.CapacityPacketRate(shm.Name)]
	cpus := int(total.Value.Value() / perPort)
	links := (cpus + 1) / 2
	t.Logf("packets per second of %d CPUs: %s", cpus, total.Value.String())
	if limit := resourcev1.DeviceRequestsMaxSize; links > limit {
		t.Skipf("a pod has at most %d ports, and it takes %d to fill a node with %d CPUs", limit, links, cpus)
	}
	for _, name := range []string{"f1", "f2"} { // each takes the whole node
		c.apply(parallel(name, links, int(total.Value.Value())/2/links))
	}
	c.until("planned by the calibration, which only n1 has", func() error {
		chain, err := c.chain()
		if planned := condition(chain.Status.Conditions, v1alpha1.ConditionPlanned).Message; err != nil || !strings.HasPrefix(planned, "on n1; not on n2: ") {
			return fmt.Errorf("%q: %w", planned, err)
		}
		return nil
	})
	of := func(chain, function string) pod {
		return pod{name: chain + "-" + function, template: chain + "-" + function, command: sleeps, node: "n1"}
	}
	c.apply(of("f1", "cu-up").manifest())
	c.apply(of("f1", "du").manifest())
	c.ready("f1-cu-up", "f1-du")
	c.apply(of("f2", "du").manifest())
	c.until("refused by the scheduler", func() error {
		var p corev1.Pod
		if err := c.get("pod", "f2-du", &p); err != nil {
			return err
		}
		for _, s := range p.Status.Conditions {
			if s.Type == corev1.PodScheduled && s.Reason == corev1.PodReasonUnschedulable && strings.Contains(s.Message, "cannot allocate all claims") {
				t.Log(s.Message)
				return nil
			}
		}
		return fmt.Errorf("%+v", p.Status)
	})
	c.in("delete", "pod", "f1-cu-up")
	c.ready("f2-du")
}

// parallel is a chain of links between two functions, each of which carries that many packets per second.
func parallel(name string, links, rate int) string {
	var ports, all strings.Builder
	for i := range links {
		fmt.Fprintf(&ports, "{name: p%d, face: native}, ", i)
		fmt.Fprintf(&all, "\n  - {name: p%d, ends: [cu-up.p%d, du.p%d], requires: {packet_rate: %dpps}}", i, i, i, rate)
	}
	return fmt.Sprintf(`
apiVersion: drayage.io/v1alpha1
kind: Chain
metadata: {name: %s}
spec:
  functions:
  - {name: cu-up, ports: [%[2]s]}
  - {name: du, ports: [%[2]s]}
  links:%s`, name, ports.String(), all.String())
}

// calibrate gives a node a calibration file until the end of the test.
func (c *cluster) calibrate(on string, measured inventory.Calibration) {
	c.t.Helper()
	var inv inventory.Inventory
	if err := json.Unmarshal([]byte(c.kubectl("-n", "dray-system", "get", "configmap", "dray-inventory-"+on, "-o", `jsonpath={.data.inventory\.json}`)), &inv); err != nil {
		c.t.Fatal(err)
	}
	measured.Measured, measured.Kernel, measured.CPUModel = time.Now(), inv.Host.Kernel, inv.Host.CPUModel
	local := filepath.Join(c.t.TempDir(), "calibration.json")
	if err := doctor.SaveCalibration(local, []inventory.Calibration{measured}); err != nil {
		c.t.Fatal(err)
	}
	content, err := os.ReadFile(local)
	if err != nil {
		c.t.Fatal(err)
	}
	file := doctor.CalibrationFile(node.DefaultStateDir)
	c.t.Cleanup(func() {
		c.on(on, "rm", "-f", file)
		c.awaitCalibrated(on, "")
	})
	if _, err := c.run(string(content), "on", on, "sh", "-c", "cat >"+file+".new && mv "+file+".new "+file); err != nil {
		c.t.Fatal(err)
	}
	c.awaitCalibrated(on, measured.Transport)
}

// awaitCalibrated waits until the scheduler can know which transports of a node are calibrated.
func (c *cluster) awaitCalibrated(node, want string) {
	c.t.Helper()
	c.until("calibrated "+want, func() error {
		got := c.device(node).Attributes["calibrated"].StringValue
		if (got == nil) != (want == "") || got != nil && *got != want {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
}

// device is the device that a node publishes.
func (c *cluster) device(node string) (d resourcev1.Device) {
	c.t.Helper()
	c.until("device of "+node, func() error {
		out, err := c.try("get", "resourceslices", "--field-selector", "spec.driver="+v1alpha1.Driver+",spec.nodeName="+node, "-o", "json")
		if err != nil {
			return err
		}
		var list resourcev1.ResourceSliceList
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Items) != 1 || len(list.Items[0].Spec.Devices) != 1 {
			return fmt.Errorf("%v: %s", err, out)
		}
		d = list.Items[0].Spec.Devices[0]
		return nil
	})
	return d
}
