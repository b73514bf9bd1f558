// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// chainOfThree has a link of pods of one node, and a link of interfaces between nodes.
const chainOfThree = `
apiVersion: drayage.io/v1alpha1
kind: Chain
metadata: {name: f1}
spec:
  functions:
  - {name: cu-up, ports: [{name: near, face: native, mtu: 1500}]}
  - {name: du, ports: [{name: near, face: native, mtu: 1500}, {name: far, face: netdev, ip: 10.39.0.1/24, mtu: 1400}]}
  - {name: ru, ports: [{name: far, face: netdev, ip: 10.39.0.2/24, mtu: 1400}]}
  links:
  - {name: near, ends: [cu-up.near, du.near], requires: {%s}}
  - {name: far, ends: [du.far, ru.far], requires: {%s}}
`

// Limits that a busy machine meets.
const (
	easyNear = "min_bitrate: 100Mbps, mtu: 1500, latency: 100ms, percentile: 75, packet_loss_ratio: 0.1"
	easyFar  = "min_bitrate: 50Mbps, mtu: 1400, latency: 100ms, percentile: 50, packet_loss_ratio: 0.1"
	// fewNear and fewFar are decided soon, and by little traffic.
	fewNear, fewFar = "mtu: 1500", "mtu: 1400, packet_loss_ratio: 0.5"
)

// fewVerdicts are the verdicts on the chain with the latter limits.
var fewVerdicts = map[string]string{"near mtu": "met", "far mtu": "met", "far packet_loss_ratio": "met"}

// everyVerdict are the verdicts on the chain with these limits.
var everyVerdict = map[string]string{
	"near min_bitrate": "met", "near mtu": "met", "near latency": "met", "near packet_loss_ratio": "met",
	"far min_bitrate": "met", "far mtu": "met", "far latency": "met", "far packet_loss_ratio": "met",
}

// An active verification decides what the applications' traffic cannot, here while they send nothing. It leaves nothing,
// and a schedule records what it found in the status of the chain.
func TestAnActiveVerification(t *testing.T) {
	chain := fmt.Sprintf(chainOfThree, fewNear, fewFar)
	if testing.Short() {
		t.Parallel()
	} else {
		chain = fmt.Sprintf(chainOfThree, easyNear, easyFar)
	}
	c := newCluster(t)
	c.awaitNetwork()
	c.apply(chain)
	for function, node := range map[string]string{"cu-up": "n1", "du": "n1", "ru": "n2"} {
		c.apply(pod{name: function, function: function, command: sleeps, node: node}.manifest())
	}
	c.ready("cu-up", "du", "ru")
	c.in("wait", "--for=condition=Ready", "chain/f1", "--timeout", patience.String())
	if testing.Short() {
		volume := c.recordsVolume()
		exit, verified := c.scheduled(volume)
		data := c.recordedRun(c.fetch(volume))
		got, met := map[string]string{}, 0
		for _, v := range data.Verdicts {
			if got[v.Link+" "+v.Requirement] = string(v.Verdict); v.Verdict == verdict.Met {
				met++
			}
		}
		code := exitFor(t, got, fewVerdicts)
		status := map[int]metav1.ConditionStatus{0: metav1.ConditionTrue, 5: metav1.ConditionUnknown}[code]
		if exit != strconv.Itoa(code) || verified.Status != status || !strings.HasPrefix(verified.Message, fmt.Sprintf("%d met", met)) {
			t.Errorf("exit code %s of %v, and the condition %+v", exit, got, verified)
		}
		if len(data.Warnings) != 1 {
			t.Errorf("warnings %q: its account may not see nodes", data.Warnings)
		}
		return
	}
	c.verifiedByHand()
	drop := []string{"INPUT", "-p", "udp", "--dport", "14789", "-m", "statistic", "--mode", "random", "--probability", "0.5", "-j", "DROP"}
	c.on("n2", slices.Concat([]string{"iptables-nft", "-I"}, drop)...)
	t.Cleanup(func() { c.on("n2", slices.Concat([]string{"iptables-nft", "-D"}, drop)...) })
	c.apply(fmt.Sprintf(chainOfThree, fewNear, "packet_loss_ratio: 0.1")) // each of the few packets that decide on an MTU may be lost
	exit, verified := c.scheduled(nil)
	if exit != "4" || verified.Status != metav1.ConditionFalse || !strings.HasPrefix(verified.Message, "1 met, 1 missed (link far, packet_loss_ratio) on ") {
		t.Errorf("with losses: exit code %s, and the condition %+v", exit, verified)
	}
}

// exitFor is the exit code that goes with verdicts, which must be these. A verdict for which a program must have had
// its CPU may also be "not measurable": that is what the product says of a busy machine.
func exitFor(t *testing.T, got, want map[string]string) (code int) {
	t.Helper()
	for name, word := range want {
		busy := got[name] == string(verdict.NotMeasurable) && word == string(verdict.Met) && !strings.HasSuffix(name, " mtu")
		if got[name] != word && !busy || len(got) != len(want) {
			t.Errorf("%s is %q, not %q: %v", name, got[name], word, got)
		}
		switch verdict.Word(got[name]) {
		case verdict.Missed:
			return 4
		case verdict.NotMeasurable:
			code = 5
		}
	}
	return code
}

// verifiedByHand measures chainOfThree, and fails to do so.
func (c *cluster) verifiedByHand() {
	c.t.Helper()
	dray := c.plugin()
	nothingNew := c.nothingNew()
	dir := filepath.Join(c.t.TempDir(), "run")
	out, code := dray("verify", "f1", "--active", "--profile", "quick", "--seed", "1", "--out", dir, "--json")
	want := exitFor(c.t, decided(c.t, out), everyVerdict)
	if code != want {
		c.t.Errorf("exit code %d, not %d", code, want)
	}
	c.until("as it was", nothingNew)
	if data := c.recordedRun(dir); len(data.Verdicts) != len(everyVerdict) || data.ExitCode() != want || !strings.HasPrefix(data.Run.Cluster.Nodes[0].Runtime, "containerd://") {
		c.t.Errorf("the records say %+v on %+v", data.Verdicts, data.Run.Cluster.Nodes)
	}
	if out, code := dray("report", dir); code != 0 || want == 0 && !strings.Contains(out, "f1: all 8 requirements met") {
		c.t.Errorf("the report of its records: exit code %d", code)
	}
	out, code = dray("verify", "f1", "--active", "--profile", "quick", "--image", "dray.local/none:1", "--out", dir+"-none", "--json")
	var failed struct{ Error, Fix string }
	if err := json.Unmarshal([]byte(out), &failed); err != nil || code != 1 || failed.Fix == "" || !strings.Contains(failed.Error, "does not start") {
		c.t.Errorf("without an image: %v, exit code %d", err, code)
	}
	c.until("as it was", nothingNew)
}

// nothingNew is an error if there are other objects than now.
func (c *cluster) nothingNew() func() error {
	get := []string{"get", "pods,resourceclaims,resourceclaimtemplates,chains", "-o", "name"}
	before := c.in(get...)
	return func() error {
		now, err := c.try(append(get, "-n", c.namespace)...)
		if err == nil && now != before {
			err = fmt.Errorf("%s, and not %s", strings.Fields(now), strings.Fields(before))
		}
		return err
	}
}

// shownLink is a link in a document.
type shownLink struct {
	Name, Transport string
	Idle            bool
	Ends            []struct{ Pod, Node string }
	Requirements    []struct{ Requirement, Verdict string }
}

// linksIn are the links of the only chain in a document.
func linksIn(t *testing.T, document string) []shownLink {
	t.Helper()
	var d struct{ Chains []struct{ Links []shownLink } }
	if err := json.Unmarshal([]byte(document), &d); err != nil || len(d.Chains) != 1 {
		t.Fatalf("%v: %s", err, document)
	}
	return d.Chains[0].Links
}

// linkIn is a link in a document.
func linkIn(t *testing.T, document, name string) shownLink {
	t.Helper()
	for _, l := range linksIn(t, document) {
		if l.Name == name {
			return l
		}
	}
	t.Fatalf("no link %s: %s", name, document)
	return shownLink{}
}

// decided are the verdicts in a document, by link and requirement.
func decided(t *testing.T, document string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, l := range linksIn(t, document) {
		for _, q := range l.Requirements {
			all[l.Name+" "+q.Requirement] = q.Verdict
		}
	}
	return all
}

// scheduled runs the job of the example once, and returns its exit code and the condition that it wrote. With its
// rights, it records an outcome and forges no verdict. Without a volume, it says that its records are lost.
func (c *cluster) scheduled(volume *records) (exit string, verified metav1.Condition) {
	c.t.Helper()
	for _, file := range []string{"rbac", "cronjob"} {
		text, err := os.ReadFile("../../../examples/kubernetes/verify/" + file + ".yaml")
		if err != nil {
			c.t.Fatal(err)
		}
		if _, err := c.run(volume.mounted(strings.ReplaceAll(string(text), "f1-split", c.namespace)), "kubectl", "apply", "-f", "-"); err != nil {
			c.t.Fatal(err)
		}
	}
	c.t.Cleanup(func() { c.kubectl("-n", "dray-system", "delete", "role,rolebinding", "dray-verify-"+c.namespace) })
	nothingNew := c.nothingNew()
	c.in("create", "job", "--from=cronjob/verify-f1", "now")
	c.until("the job's end", func() error {
		out, err := c.try("-n", c.namespace, "get", "job", "now", "-o", "jsonpath={.status.failed}{.status.succeeded}")
		if err == nil && out != "1" {
			err = fmt.Errorf("%q", out)
		}
		return err
	})
	logs := c.in("logs", "job/now")
	c.t.Logf("the job:\n%s", logs)
	if lost := strings.Contains(logs, "the records are not kept: "); lost != (volume == nil) {
		c.t.Errorf("without records: %v", lost)
	}
	exit = c.in("get", "pods", "-l", "job-name=now", "-o", "jsonpath={.items[0].status.containerStatuses[0].state.terminated.exitCode}")
	chain, err := c.chain()
	if err != nil {
		c.t.Fatal(err)
	}
	verified = condition(chain.Status.Conditions, v1alpha1.ConditionVerified)
	if verified.ObservedGeneration != chain.Generation {
		c.t.Errorf("the condition: %+v", verified)
	}
	c.forgesNothing()
	c.in("delete", "job", "now", "--cascade=foreground")
	c.until("as it was", nothingNew)
	return exit, verified
}

// forgesNothing tries, with the rights of the job, what these shall not permit. Each try has a field manager of its own:
// an apply that no longer names a field withdraws what its manager applied before, and fails for that reason.
func (c *cluster) forgesNothing() {
	c.t.Helper()
	forged := `{apiVersion: drayage.io/v1alpha1, kind: Chain, metadata: {name: f1}, status: {conditions: [{type: %s, status: "True", reason: R, message: forged, lastTransitionTime: "2026-01-01T00:00:00Z"}]%s}}`
	for manager, claim := range map[string]struct{ text, want string }{
		"met":      {fmt.Sprintf(forged, "Met", ""), "only dray-operator may write the status of a chain"},
		"figure":   {fmt.Sprintf(forged, "Verified", `, verdict: "99 met"`), "only dray-operator may write the status of a chain"},
		"verified": {fmt.Sprintf(forged, "Verified", ""), ""},
	} {
		_, err := c.run(claim.text, "kubectl", "-n", c.namespace, "--as=system:serviceaccount:"+c.namespace+":dray-verify",
			"apply", "--server-side", "--force-conflicts", "--subresource=status", "--field-manager="+manager, "-f", "-")
		if (err == nil) != (claim.want == "") || err != nil && !strings.Contains(err.Error(), claim.want) {
			c.t.Errorf("%s: %v", manager, err)
		}
	}
	for _, right := range []string{"patch chains/f1", "update chains/f1 --subresource=status", "get secrets", "patch chains/other --subresource=status"} {
		args := append(append([]string{"-n", c.namespace, "--as=system:serviceaccount:" + c.namespace + ":dray-verify", "auth", "can-i"}, strings.Fields(right)...), "-q")
		if _, err := c.try(args...); err == nil {
			c.t.Errorf("the job may %s", right)
		}
	}
}
