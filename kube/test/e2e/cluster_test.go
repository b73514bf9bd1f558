// SPDX-License-Identifier: Apache-2.0

// Package e2e tests Drayage on a real cluster of two nodes. run.sh starts the
// cluster and installs Drayage there. Tests that only make pods run in parallel,
// after all those that kill, change or count something on a node.
package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/drayage/dray/test/testenv"
)

// clusterEnv names the program that controls the cluster.
const clusterEnv = "DRAY_KUBE_CLUSTER"

// patience bounds each wait, on a busy machine.
var patience = testenv.Patient(5 * time.Minute)

// worthSaying is how long a wait is that the log explains.
const worthSaying = 30 * time.Second

// cluster is the cluster, and a namespace of the test whose pods are restricted.
type cluster struct {
	t         *testing.T
	program   string
	namespace string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	program := os.Getenv(clusterEnv)
	if program == "" {
		t.Skip("needs a cluster with Drayage: run make test-kube")
	}
	c := &cluster{t: t, program: program, namespace: "test-" + rand.String(5)}
	c.apply(fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {pod-security.kubernetes.io/enforce: restricted}}}`, c.namespace))
	t.Cleanup(func() {
		if t.Failed() {
			c.explain()
		}
		c.remove()
	})
	return c
}

// remove deletes the namespace, and waits for what nodes hold for it. Kubernetes takes some seconds
// more until the namespace itself is gone, in which nothing happens.
func (c *cluster) remove() {
	c.t.Helper()
	c.kubectl("delete", "namespace", c.namespace, "--ignore-not-found", "--wait=false")
	c.until("the namespace is empty", func() error {
		left, err := c.try("-n", c.namespace, "get", "pods,resourceclaims", "-o", "name")
		if err == nil && left != "" {
			err = fmt.Errorf("%s are left", strings.Fields(left))
		}
		return err
	})
}

// explain logs what helps to understand a failure.
func (c *cluster) explain() {
	for _, args := range [][]string{
		{"get", "chains,pods,resourceclaims", "-o", "wide"},
		{"get", "events", "--sort-by=.lastTimestamp"},
	} {
		out, _ := c.try(append(args, "-n", c.namespace)...)
		c.t.Logf("%s:\n%s", strings.Join(args, " "), out)
	}
	for _, component := range []string{"dray-node", "dray-broker", "dray-net", "dray-operator"} {
		out, _ := c.try("logs", "-n", "dray-system", "-l", "app.kubernetes.io/name="+component, "--tail=25", "--prefix")
		c.t.Logf("%s:\n%s", component, out)
	}
}

// run runs the cluster's program.
func (c *cluster) run(stdin string, args ...string) (string, error) {
	cmd := exec.Command(c.program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), err
}

func (c *cluster) try(args ...string) (string, error) {
	return c.run("", append([]string{"kubectl"}, args...)...)
}

// kubectl fails the test if the command fails.
func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	return c.must(append([]string{"kubectl"}, args...)...)
}

// must runs a command of the cluster's program.
func (c *cluster) must(args ...string) string {
	c.t.Helper()
	out, err := c.run("", args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// in runs kubectl in the test's namespace.
func (c *cluster) in(args ...string) string {
	c.t.Helper()
	return c.kubectl(append([]string{"-n", c.namespace}, args...)...)
}

func (c *cluster) apply(manifest string) {
	c.t.Helper()
	if err := c.tryApply(manifest); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) tryApply(manifest string) error {
	args := []string{"kubectl", "apply", "-f", "-"}
	if c.namespace != "" {
		args = append(args, "-n", c.namespace)
	}
	_, err := c.run(manifest, args...)
	return err
}

// on runs a program on a node, as its root.
func (c *cluster) on(node string, args ...string) string {
	c.t.Helper()
	return c.must(append([]string{"on", node}, args...)...)
}

// prints returns an error unless kubectl, in the test's namespace, prints a text.
func (c *cluster) prints(want string, args ...string) error {
	out, err := c.try(append([]string{"-n", c.namespace}, args...)...)
	if err == nil && !strings.Contains(out, want) {
		err = fmt.Errorf("no %q: %s", want, out)
	}
	return err
}

// get decodes an object of the namespace.
func (c *cluster) get(kind, name string, into any) error {
	out, err := c.try("-n", c.namespace, "get", kind, name, "-o", "json")
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

// longestPause is the time between two looks at what takes long. Each look starts a kubectl.
const longestPause = 500 * time.Millisecond

// until waits for a condition, which says why it does not hold yet.
func (c *cluster) until(what string, holds func() error) time.Duration {
	c.t.Helper()
	start := time.Now()
	var last error
	for pause := longestPause / 5; ; pause = min(2*pause, longestPause) {
		err := holds()
		if err == nil {
			if took := time.Since(start); took > worthSaying {
				c.t.Logf("%s only after %v; until then: %v", what, took.Round(time.Second), last)
			}
			return time.Since(start)
		}
		last = err
		if time.Since(start) > patience {
			c.t.Fatalf("after %s: not %s: %v", patience, what, err)
		}
		time.Sleep(pause)
	}
}

// ready waits for pods of the namespace.
func (c *cluster) ready(pods ...string) {
	c.t.Helper()
	for _, p := range pods {
		c.until(p+" ready", func() error {
			_, err := c.try("-n", c.namespace, "wait", "--for=condition=Ready", "pod/"+p, "--timeout=10s")
			return err
		})
	}
}
