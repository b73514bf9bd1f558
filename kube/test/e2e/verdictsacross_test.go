// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

// required is chain f1 with these requirements.
func required(text string) string {
	return strings.ReplaceAll(f1, "latency: 100ms, percentile: 90", text)
}

// requirement waits until a requirement of the chain's link has a status and a reason, with that text.
func (c *cluster) requirement(kind string, status metav1.ConditionStatus, reason, text string) {
	c.t.Helper()
	c.until(fmt.Sprintf("%s is %s (%s, %q)", kind, status, reason, text), func() error {
		chain, err := c.chain()
		if err != nil {
			return err
		}
		for _, l := range chain.Status.Links {
			for _, q := range l.Requirements {
				if q.Type == kind && q.Status == status && q.Reason == reason && strings.Contains(q.Message, text) {
					c.t.Logf("%s: %s", kind, q.Message)
					return nil
				}
			}
		}
		return fmt.Errorf("%+v", chain.Status.Links)
	})
}

// verdictOf is the verdict on a requirement in a node's metrics.
func (c *cluster) verdictOf(node, kind string) string {
	out, err := c.metrics(node)
	if err != nil {
		return err.Error()
	}
	for _, line := range strings.Split(out, "\n") {
		if strings.HasPrefix(line, "dray_link_requirement_verdict{") && strings.Contains(line, `namespace="`+c.namespace+`"`) &&
			strings.Contains(line, `requirement="`+kind+`"`) && strings.HasSuffix(line, " 1") {
			_, rest, _ := strings.Cut(line, `verdict="`)
			return rest[:strings.Index(rest, `"`)]
		}
	}
	return ""
}

// A link between two nodes has verdicts with figures. Losses on the way, which neither node sees
// by itself, are judged.
func TestVerdictsBetweenNodes(t *testing.T) {
	t.Parallel() // no other test that runs then has a tunnel
	c := newCluster(t)
	dray := c.plugin()
	c.trafficAcross(required("latency: 500ms, percentile: 90, packet_delay_variation: 500ms, packet_loss_ratio: 0.01, mtu: 1500"), true)
	kinds := []string{"latency", "packet_delay_variation", "packet_loss_ratio", "mtu"}
	for i, figure := range []string{" ± ", "one-way variation at p90; bound: ≤ ", "measured: 0 (0 of ", "passed in "} {
		c.requirement(kinds[i], metav1.ConditionTrue, v1alpha1.ReasonMet, figure)
	}
	if out, code := dray("verify", "f1", "--timeout", patience.String()); code != 0 || strings.Count(out, "met") < 3 {
		t.Errorf("verify: exit code %d", code)
	}
	if out, code := dray("top", "f1", "--samples", "1"); code != 0 || !strings.Contains(out, "vxlan") && !strings.Contains(out, "netdev") {
		t.Errorf("top: exit code %d", code)
	}
	for _, node := range []string{"n1", "n2"} {
		for _, kind := range kinds {
			c.until("met in the metrics of "+node, func() error {
				if got := c.verdictOf(node, kind); got != "met" {
					return fmt.Errorf("%s is %q", kind, got)
				}
				return nil
			})
		}
	}

	drop := []string{"INPUT", "-p", "udp", "--dport", "14789", "-m", "statistic", "--mode", "random", "--probability", "0.1", "-j", "DROP"}
	c.on("n2", slices.Concat([]string{"iptables-nft", "-I"}, drop)...)
	t.Cleanup(func() { c.on("n2", slices.Concat([]string{"iptables-nft", "-D"}, drop)...) })
	c.requirement("packet_loss_ratio", metav1.ConditionFalse, v1alpha1.ReasonMissed, "bound: ≥ 0.0")
	if _, code := dray("verify", "f1", "--timeout", patience.String()); code != 4 {
		t.Errorf("with losses, verify has exit code %d", code)
	}
}

// A queue on the way makes a latency missed, although the nodes have no common clock.
func TestAQueueBetweenNodes(t *testing.T) {
	c := newCluster(t)
	c.trafficAcross(required("latency: 500us, percentile: 75"), true)
	t.Cleanup(func() { c.on("n1", "tc", "qdisc", "del", "dev", "eth0", "root") })
	for _, args := range []string{ // less than the traffic, so the queue stays full: some 60 ms. It may first lose many probes
		"qdisc add dev eth0 root handle 1: htb",
		"class add dev eth0 parent 1: classid 1:20 htb rate 2mbit burst 2k",
		"qdisc add dev eth0 parent 1:20 pfifo limit 60",
		"filter add dev eth0 parent 1: protocol ip u32 match ip protocol 17 0xff match ip dport 14789 0xffff flowid 1:20",
	} {
		c.on("n1", slices.Concat([]string{"tc"}, strings.Fields(args))...)
	}
	c.requirement("latency", metav1.ConditionFalse, v1alpha1.ReasonMissed, "exceeds 500us")
}
