// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// plugin is `kubectl dray` of this repository, which run.sh builds. The returned function runs it, and returns what
// it prints and its exit code.
func (c *cluster) plugin() func(args ...string) (string, int) {
	c.t.Helper()
	program, err := filepath.Abs("../../../bin/kubectl-dray")
	if err != nil {
		c.t.Fatal(err)
	}
	return func(args ...string) (string, int) {
		c.t.Helper()
		cmd := exec.Command(program, append([]string{"-n", c.namespace}, args...)...)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(c.program)+":"+os.Getenv("PATH"))
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			c.t.Fatal(err)
		}
		c.t.Logf("kubectl dray %s: exit code %d\n%.2000s%s", strings.Join(args, " "), cmd.ProcessState.ExitCode(), out.String(), errs.String())
		return out.String(), cmd.ProcessState.ExitCode()
	}
}

// kubectl dray shows what the cluster has: the plan, the pods, the traffic, the verdict.
func TestKubectlDray(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	dray := c.plugin()
	// A bridge drops the answers to broadcasts, whose source would be a broadcast address.
	const mac = "02:00:00:00:00:02"
	c.apply(strings.Replace(f1, "10.38.0.2/24", "10.38.0.2/24, mac: '"+mac+"'", 1))
	c.apply(pod{name: "du", function: "du", command: receives, hostUsers: true}.manifest())
	c.apply(pod{name: "cu-up", function: "cu-up", command: sends + " --to-mac " + mac, hostUsers: true}.manifest())
	c.ready("du", "cu-up")
	c.flows()
	node := c.node("du")
	if out, code := dray("plan", "f1"); code != 0 || !strings.Contains(out, "chain f1 on n1, n2: feasible") || !strings.Contains(out, "shm") {
		t.Errorf("the plan: exit code %d", code)
	}
	if out, code := dray("verify", "f1", "--timeout", patience.String()); code != 0 || !strings.Contains(out, "≤ 100ms at p90") || !strings.Contains(out, "met") {
		t.Errorf("the verdict: exit code %d", code)
	}
	want := fmt.Sprintf("cu-up.f1u (pod cu-up on %s), du.f1u (pod du on %[1]s)", node)
	if out, code := dray("status", "f1"); code != 0 || !strings.Contains(out, want) {
		t.Errorf("the status: exit code %d, without %q", code, want)
	}
	c.until("a sample with traffic", func() error { // on a busy machine, a second can pass without any
		out, _ := dray("top", "f1", "--samples", "1", "--json")
		var sample live.Sample
		if err := json.Unmarshal([]byte(out), &sample); err != nil || len(sample.Links) != 1 || len(sample.Links[0].Now) != 2 || sample.Links[0].Now[0].Received == 0 {
			return fmt.Errorf("%+v, %v", sample, err)
		}
		return nil
	})
	file := filepath.Join(t.TempDir(), "f1.pcapng")
	if _, code := dray("capture", "f1", "du.f1u", "--count", "100", "-w", file); code != 0 {
		t.Errorf("the capture: exit code %d", code)
	}
	if out, err := exec.Command("tshark", "-n", "-r", file).CombinedOutput(); err != nil || strings.Count(string(out), "10.38.0.1 → ") < 20 {
		t.Errorf("the packets: %v: %.2000s", err, out)
	}
	c.apply(strings.ReplaceAll(strings.ReplaceAll(f1, "name: f1}", "name: tight}"), "latency: 100ms", "latency: 1ns"))
	c.until("infeasible", func() error {
		if out, code := dray("status", "tight"); code != 3 || !strings.Contains(out, "infeasible") {
			return fmt.Errorf("exit code %d", code)
		}
		return nil
	})
	if _, code := dray("status", "none"); code != 1 {
		t.Errorf("no such chain: exit code %d", code)
	}
	c.relinks(dray)
}

// relinks moves the link of running pods to a bridge and back, under traffic. What nodes
// cannot make is refused, and the link stays as it is.
func (c *cluster) relinks(dray func(args ...string) (string, int)) {
	c.t.Helper()
	addresses := c.portAddresses()
	for _, move := range []struct{ to, transport string }{{"bridge", "bridge"}, {"auto", "shm"}} {
		if out, code := dray("relink", "f1", "f1u", move.to, "--timeout", patience.String()); code != 0 || !strings.Contains(out, "now uses "+move.transport) {
			c.t.Errorf("relink to %s: exit code %d", move.to, code)
		}
		c.flows()
		if chain, err := c.chain(); err != nil || chain.Status.Links[0].Transport != move.transport || chain.Status.Ready != "1/1" {
			c.t.Errorf("%+v, %v", chain, err)
		}
		if halves := c.halves(c.node("du")); strings.Contains(strings.Join(halves, " "), c.namespace+"/") != (move.transport == "bridge") {
			c.t.Errorf("on %s, dray-net has %s", move.transport, halves)
		}
		c.requirement("latency", metav1.ConditionTrue, v1alpha1.ReasonMet, "required: ≤ 100ms at p90; measured: ")
	}
	if _, code := dray("relink", "f1", "f1u", "veth"); code != 3 {
		c.t.Errorf("relink to veth: exit code %d", code)
	}
	if got := c.portAddresses(); got != addresses {
		c.t.Errorf("the ports have %s, not %s", got, addresses)
	}
	for _, name := range []string{"cu-up", "du"} {
		var p corev1.Pod
		if err := c.get("pod", name, &p); err != nil || p.Status.Phase != corev1.PodRunning || p.Status.ContainerStatuses[0].RestartCount != 0 {
			c.t.Errorf("pod %s: %+v, %v", name, p.Status, err)
		}
	}
	sent, received := c.finish()
	if sent.Lost > sent.Sent/10 || received.Corrupt+received.Duplicates+sent.Corrupt+sent.Duplicates != 0 { // each transport had a third of the time
		c.t.Errorf("sent %+v, received %+v", sent, received)
	}
	c.t.Logf("two moves: lost on the way there %d, in all %d, not sent %d of %d", received.Lost, sent.Lost, sent.Unsent, sent.Sent)
}
