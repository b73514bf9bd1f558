// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
)

// aChain has a link on one node, and a link between two.
func aChain() *Chain {
	var c Chain
	c.Status.Links = []Link{
		{Name: "near", Transport: "shm", Ends: []End{{Function: "a", Port: "near", Pod: "a-0", Node: "n1"}, {Function: "b", Port: "near", Pod: "b-0", Node: "n1"}}, Requirements: []Condition{
			{Type: "latency", Status: isTrue}, {Type: "min_bitrate", Status: "Unknown"},
		}},
		{Name: "far", Transport: "vxlan", Ends: []End{{Function: "a", Port: "far", Pod: "a-0", Node: "n1"}, {Function: "c", Port: "far", Pod: "c-0", Node: "n2"}}, Requirements: []Condition{
			{Type: "latency", Status: isTrue, Message: "seen"}, {Type: "packet_loss_ratio", Status: isTrue},
		}},
	}
	return &c
}

// TestConditionsAreMeasured: what the nodes see counts only for delays between nodes, and for links without a
// measurement.
func TestConditionsAreMeasured(t *testing.T) {
	undecided := func(link, requirement string) verdict.Verdict {
		return verdict.Verdict{Link: link, Requirement: requirement, Verdict: verdict.NotMeasurable, Direction: "a → b", Reason: "too busy"}
	}
	c := aChain()
	near := c.Conditions("near", []verdict.Verdict{undecided("near", "latency"), undecided("far", "latency"), {Link: "near", Requirement: "min_bitrate", Verdict: verdict.Missed}})
	if len(near) != 2 || near[0].Status != "Unknown" || !strings.Contains(near[0].Message, "a → b: because: too busy") || near[1].Status != isFalse {
		t.Errorf("on one node: %+v", near)
	}
	far := c.Conditions("far", []verdict.Verdict{undecided("far", "latency"), undecided("far", "packet_loss_ratio")})
	if len(far) != 2 || far[0].Status != isTrue || far[0].Message != "seen" || far[1].Status != "Unknown" {
		t.Errorf("between nodes: %+v", far)
	}
	if met := c.Conditions("far", []verdict.Verdict{{Link: "far", Requirement: "latency", Verdict: verdict.Missed}}); met[0].Status != isFalse || met[1].Status != isTrue {
		t.Errorf("a verdict, and none: %+v", met)
	}
}

// TestMeasurableLinks have pods at both ends, and ends of one kind.
func TestMeasurableLinks(t *testing.T) {
	c := aChain()
	link := func(name string, faces ...chain.Face) plan.Link {
		l := plan.Link{Name: name, Transport: "planned"}
		for _, f := range faces {
			l.Ends = append(l.Ends, plan.End{Face: f})
		}
		return l
	}
	got := measurable(c, []plan.Link{link("near", chain.FaceNative, chain.FaceDPDK), link("far", chain.FaceNetdev, chain.FaceNetdev), link("none", chain.FaceNative, chain.FaceNative)})
	if len(got) != 2 || got[0].Transport != "shm" || got[1].Transport != "vxlan" {
		t.Errorf("%+v", got)
	}
	c.Status.Links[0].Ends[1].Pod = ""
	if got := measurable(c, []plan.Link{link("near", chain.FaceNative, chain.FaceNative), link("far", chain.FaceNetdev, chain.FaceNative)}); len(got) != 0 {
		t.Errorf("a link without a pod, or of two kinds: %+v", got)
	}
}

// TestNoCopyOfMemif: a copy would measure another transport, and say nothing of it.
func TestNoCopyOfMemif(t *testing.T) {
	c := aChain()
	c.Metadata.Name, c.Status.Links[0].Transport = "f1", "memif"
	if _, err := new(Kubectl).StandIn(context.Background(), c, "draygen", time.Hour); err == nil || !strings.Contains(err.Error(), "link near of chain") {
		t.Error(err)
	}
}

func TestNamesOfCopies(t *testing.T) {
	for of, want := range map[string]string{"f1": "f1-dray-verify", "exactly-twenty-chars": "exactly-twenty-chars-dray-verify"} {
		if got := standInName(of); got != want {
			t.Errorf("%s: %s", of, got)
		}
	}
	a, b := standInName("a-chain-with-a-very-long-name-01"), standInName("a-chain-with-a-very-long-name-02")
	if a == b || len(a) > 32 || !strings.HasPrefix(a, "a-chain-wit") || !strings.HasSuffix(a, "-dray-verify") || strings.Contains(a, "--") {
		t.Errorf("%s, %s", a, b)
	}
}

// TestACopyHasNativePorts in place of dpdk ones, and everything else of the chain.
func TestACopyHasNativePorts(t *testing.T) {
	spec, err := nativePorts(json.RawMessage(`{"functions":[{"name":"a","ports":[{"name":"p","face":"dpdk","mtu":1600},{"name":"q","face":"netdev"}]}],"links":[{"requires":{"latency":"1ms"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(spec)
	if want := `{"functions":[{"name":"a","ports":[{"face":"native","mtu":1600,"name":"p"},{"face":"netdev","name":"q"}]}],"links":[{"requires":{"latency":"1ms"}}]}`; err != nil || string(text) != want {
		t.Errorf("%v: %s", err, text)
	}
}

// TestACopyIsBounded: its pods end by themselves, and all of it goes with the chain.
func TestACopyIsBounded(t *testing.T) {
	s := StandIn{Namespace: "ran", Chain: "f1-dray-verify", Of: "f1", uid: "u1", Life: 90 * time.Minute}
	text, err := json.Marshal(s.pod("du", "n2", "example.org/draygen:1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"activeDeadlineSeconds":5400`, `"uid":"u1"`, `"name":"f1-dray-verify-du"`, `"resourceClaimTemplateName":"f1-dray-verify-du"`, `"values":["n2"]`, `"image":"example.org/draygen:1"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the pod lacks %s: %s", want, text)
		}
	}
}
