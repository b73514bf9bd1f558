// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

// pathSpec is the chain of chainSpec with a path over its link.
func pathSpec(latency string) string {
	return strings.TrimSuffix(chainSpec(easy), "}") + `,"paths":[{"name":"dl","from":"cu.f1u","to":"du.f1u","requires":{"latency":"` + latency + `","packet_loss_ratio":0.01}}]}`
}

// Links that meet their requirements say nothing of the functions on a path.
func TestAPathIsNotMetBecauseItsLinksAre(t *testing.T) {
	b := newBench(t, newChain(pathSpec("2ms")), newNode("n1"))
	b.reconcile()
	for _, function := range []string{"cu", "du"} {
		b.newPod(function+"-1", function, "n1", ready(), says("latency", yes), says("packet_loss_ratio", yes))
	}
	c := b.reconcile()
	b.wants(c, v1alpha1.ConditionReady, yes, v1alpha1.ReasonReady, "")
	b.wants(c, v1alpha1.ConditionMet, unknown, v1alpha1.ReasonNotMeasured, "path dl: latency: required: ≤ 2ms at p99; because: nodes judge links, and see no path through a function; needs: `kubectl dray verify f1 --active --paths`")
	if len(c.Status.Paths) != 1 || len(c.Status.Paths[0].Requirements) != 2 || strings.Join(c.Status.Paths[0].Links, " ") != "f1u" || c.Status.Verdict != "2 met, 2 unknown" {
		t.Errorf("status %+v, verdict %s", c.Status.Paths, c.Status.Verdict)
	}
	again := c.DeepCopy()
	b.writes = nil
	b.reconcile()
	if len(b.writes) > 0 {
		t.Errorf("the status is written again: %v", b.writes)
	}
	again.Status.Paths[0].Requirements[0].Status, again.Status.Paths[0].Links[0] = no, "x"
	if p := c.Status.Paths[0]; p.Requirements[0].Status == no || p.Links[0] == "x" {
		t.Error("a copy of the chain shares its paths")
	}
}

// A missed link outweighs an undecided path.
func TestAMissedLinkOutweighsAPath(t *testing.T) {
	b := newBench(t, newChain(pathSpec("2ms")), newNode("n1"))
	b.reconcile()
	for _, function := range []string{"cu", "du"} {
		b.newPod(function+"-1", function, "n1", ready(), says("latency", no), says("packet_loss_ratio", yes))
	}
	b.wants(b.reconcile(), v1alpha1.ConditionMet, no, v1alpha1.ReasonMissed, "link f1u: latency: ")
}

func TestAnInfeasiblePathHasNoTemplates(t *testing.T) {
	b := newBench(t, newChain(pathSpec("1ns")), newNode("n1"))
	c := b.reconcile()
	b.wants(c, v1alpha1.ConditionPlanned, metav1.ConditionFalse, v1alpha1.ReasonInfeasible, "n1: path dl: latency ≤ 1ns at p99: its links are expected to give 100us")
	b.wants(c, v1alpha1.ConditionPlanned, metav1.ConditionFalse, v1alpha1.ReasonInfeasible, "allow 100us, use faster links")
	if len(b.templates()) > 0 || len(c.Status.Paths) > 0 {
		t.Errorf("%v, %+v", b.templates(), c.Status.Paths)
	}
}

// Without a placement, pods may be where a path is expected to take too long.
func TestAPathThatShouldNotCrossIsAWarning(t *testing.T) {
	spec := strings.Replace(pathSpec("300us"), easy, `"packet_loss_ratio":0.0001`, 1)
	const want = "; warning: path dl: latency ≤ 300us at p99 is not expected if its links cross nodes, as "
	for spec, warns := range map[string]bool{spec: true, strings.Replace(spec, "300us", "1s", 1): false, `{"placement":{},` + spec[1:]: false} {
		b := newBench(t, newChain(spec), withNetwork(newNode("n1", withVxlan), 9000), machine("n1", "2"))
		c := b.reconcile()
		b.wants(c, v1alpha1.ConditionPlanned, yes, v1alpha1.ReasonPlanned, "on n1")
		if strings.Contains(c.Status.Conditions[0].Message, want) != warns {
			t.Errorf("warns is not %v: %s", warns, c.Status.Conditions[0].Message)
		}
	}
}

// A user's packet that does not fit into the network between nodes is a warning that names the link. One that does
// not fit into the ports is refused.
func TestAPathsPacketMustFit(t *testing.T) {
	for mtu, want := range map[string]string{
		"1450": "on n1",
		"1500": "; warning: path dl: mtu ≥ 1500 B is not expected if its links cross nodes, as a user's packet of at most 1499 B fits into link f1u, of which VXLAN takes 50 B of the underlay's 1549",
		"1501": "n1: path dl: mtu ≥ 1501 B: a user's packet of at most 1500 B fits into link f1u; give the ports of link f1u an mtu of 1501, or require less",
	} {
		spec := strings.Replace(pathSpec("1s"), `"latency":"1s"`, `"mtu":`+mtu, 1)
		b := newBench(t, newChain(spec), withNetwork(newNode("n1", withVxlan), 1549), machine("n1", "2"))
		c, status, reason := b.reconcile(), yes, v1alpha1.ReasonPlanned
		if mtu == "1501" {
			status, reason = no, v1alpha1.ReasonInfeasible
		}
		b.wants(c, v1alpha1.ConditionPlanned, status, reason, want)
		if text := c.Status.Conditions[0].Message; strings.Contains(text, "warning") != strings.Contains(want, "warning") {
			t.Errorf("mtu %s: %s", mtu, text)
		}
		if mtu == "1450" && c.Status.Paths[0].Requirements[1].Type != "mtu" && c.Status.Paths[0].Requirements[0].Type != "mtu" {
			t.Errorf("%+v", c.Status.Paths)
		}
	}
}
