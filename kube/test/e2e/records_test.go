// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/result/verdict"
)

// records is a volume for the records of a job: a directory on each node, for the job's user.
type records struct{ path string }

const recordsClaim = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  capacity: {storage: 64Mi}
  accessModes: [ReadWriteMany]
  hostPath: {path: %[2]s, type: Directory}
  claimRef: {namespace: %[1]s, name: records}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: records}
spec: {accessModes: [ReadWriteMany], storageClassName: "", volumeName: %[1]s, resources: {requests: {storage: 64Mi}}}
`

func (c *cluster) recordsVolume() *records {
	c.t.Helper()
	r := &records{"/var/lib/" + c.namespace}
	for _, node := range []string{"n1", "n2"} {
		c.on(node, "install", "-d", "-o", "1000", "-g", "1000", r.path)
		c.t.Cleanup(func() { c.on(node, "rm", "-r", r.path) })
	}
	c.apply(fmt.Sprintf(recordsClaim, c.namespace, r.path))
	c.t.Cleanup(func() { c.kubectl("delete", "persistentvolume", c.namespace, "--wait=false") })
	return r
}

// mounted is a job that works in the volume, as docs/kubernetes.md says; without a volume, it is unchanged.
func (r *records) mounted(job string) string {
	if r == nil {
		return job
	}
	return strings.NewReplacer(
		"            volumeMounts:\n", "            workingDir: /records\n            volumeMounts:\n            - {name: records, mountPath: /records}\n",
		"          volumes:\n", "          volumes:\n          - {name: records, persistentVolumeClaim: {claimName: records}}\n",
	).Replace(job)
}

// fetch copies the one run in the volume to this machine.
func (c *cluster) fetch(r *records) string {
	c.t.Helper()
	to := c.t.TempDir()
	for _, node := range []string{"n1", "n2"} {
		unpack := exec.Command("tar", "-x", "-C", to)
		unpack.Stdin = strings.NewReader(c.on(node, "tar", "-c", "-C", r.path, "."))
		if out, err := unpack.CombinedOutput(); err != nil {
			c.t.Fatalf("%v: %s", err, out)
		}
	}
	found, err := filepath.Glob(filepath.Join(to, "out/f1-*"))
	if err != nil || len(found) != 1 {
		c.t.Fatalf("%v: the volume has %q", err, found)
	}
	return found[0]
}

// recordedRun checks the records and the page of an active verification of chainOfThree, or of a chain with such
// links and with paths.
func (c *cluster) recordedRun(dir string, paths ...string) *report.Data {
	c.t.Helper()
	data, err := report.Load(dir)
	if err != nil {
		c.t.Fatal(err)
	}
	where := data.Run.Cluster
	if where == nil || len(where.Nodes) != 2 || data.Run.Chain != "f1" || data.Run.Profile != "quick" || data.Run.Finished.IsZero() {
		c.t.Fatalf("%+v", data.Run)
	}
	for _, n := range where.Nodes {
		if n.Kernel == "" || n.CPUModel == "" || n.CPUs == 0 || n.Fault != "" {
			c.t.Errorf("a node: %+v", n)
		}
	}
	links := map[string]string{}
	for _, l := range where.Links {
		links[l.Name] = l.Transport + " " + l.Ends[0].Node + " " + l.Ends[1].Node
	}
	if links["near"] != "shm n1 n1" || links["far"] != "vxlan n1 n2" {
		c.t.Errorf("the links: %v", links)
	}
	measured := map[string]int{}
	for _, t := range data.Trials {
		if t.Error == "" && t.Env.Kernel != "" && (t.PathMTU != nil && t.PathMTU.Passed || t.Delivery != nil && t.Delivery.Received > 0) {
			measured[t.Link]++
		}
	}
	for _, name := range append([]string{"near", "far"}, paths...) {
		if measured[name] == 0 {
			c.t.Errorf("no packet of the records' trials passed %s: %v", name, measured)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, report.PageFile))
	if err != nil {
		c.t.Fatal(err)
	}
	wanted := []string{"f1-dray-verify-du", "on n1", "on n2", ">shm<", ">vxlan<", where.Nodes[0].Kernel, "packet_loss_ratio", "Records"}
	if slices.ContainsFunc(data.Verdicts, func(v verdict.Verdict) bool { return v.Verdict == verdict.Met }) {
		wanted = append(wanted, "✓</span> met")
	}
	for _, want := range wanted {
		if !strings.Contains(string(page), want) {
			c.t.Errorf("the page lacks %q", want)
		}
	}
	c.t.Logf("%d records, %d verdicts, a page of %d bytes", len(data.Trials), len(data.Verdicts), len(page))
	return data
}
