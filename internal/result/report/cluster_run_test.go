// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/drayage/dray/test/testenv"
)

// inCluster is a run of a chain with pods on two nodes. Link f1u is on one of them, n3 is between
// them, and draygen has not measured oam.
func inCluster() *fixture {
	f := good()
	f.run.Links, f.run.Functions, f.run.Profile = nil, nil, "quick"
	f.plan.Host, f.plan.Links[0].Transport = "worker-1, worker-2", "shm"
	between := linkN3()
	between.Transport, between.Requires = "vxlan", chain.Requires{Latency: units.Duration(time.Millisecond), Percentile: 99}
	f.plan.Links = append(f.plan.Links, between)
	f.plan.Functions = append(f.plan.Functions, plan.Function{Name: "upf", Host: "worker-2"})
	for round := range 3 {
		f.delivery(f.trial("n3", record.QStream, "cu-up.n3", "upf.n3", round), uint64(between.Load), 100_000, 0)
		f.delivery(f.trial("n3", record.QStream, "upf.n3", "cu-up.n3", round), uint64(between.Load), 100_000, 0)
	}
	end := func(function, port, node string) ClusterEnd {
		return ClusterEnd{Function: function, Port: port, Pod: "site-dray-verify-" + function, Node: node}
	}
	seen := func(requirement string, word verdict.Word, measured string) []verdict.Verdict {
		return []verdict.Verdict{{Requirement: requirement, Verdict: word, Required: verdict.Figure{Text: "≤ 1ms at p99"}, Measured: verdict.Figure{Text: measured},
			Bound: verdict.Figure{Text: "≤ 640us"}, Basis: "probes between the functions' packets, one way, on the clocks of two nodes", Method: "judged by the nodes"}}
	}
	f.run.Cluster = &RunCluster{
		Context: "lab", Namespace: "ran", Copy: "site-dray-verify", Image: "registry.example/draygen:0.2.0",
		Links: []ClusterLink{
			{Name: "f1u", Transport: "shm", Ends: []ClusterEnd{end("cu-up", "f1u", "worker-1"), end("du", "f1u", "worker-1")}},
			{Name: "n3", Transport: "vxlan", Ends: []ClusterEnd{end("cu-up", "n3", "worker-1"), end("upf", "n3", "worker-2")}, Verdicts: seen("latency", verdict.Met, "210us")},
			{Name: "oam", Transport: "bridge", Ends: []ClusterEnd{end("du", "mgmt", "worker-1"), end("upf", "mgmt", "worker-2")}, Verdicts: seen("packet_loss_ratio", verdict.Missed, "0.3")},
		},
		Nodes: []ClusterNode{
			{Name: "worker-1", Kernel: "6.12.0", OS: "Debian GNU/Linux 13 (trixie)", CPUs: 32, CPUModel: "AMD EPYC 9354P 32-Core Processor", Runtime: "containerd://2.2.0", Pods: 2, Transports: []string{"shm", "veth", "vxlan"},
				Calibration: []inventory.Calibration{{Transport: "shm", Measured: start, UDPBitrate: 9e9, PacketRate: 4e6, Latency: []inventory.LatencyPoint{{Percentile: 99, Latency: 40 * time.Microsecond}}}}},
			{Name: "worker-2", Kernel: "6.1.0", OS: "Debian GNU/Linux 12 (bookworm)", CPUs: 8, CPUModel: "Intel(R) Xeon(R) Processor @ 2.60GHz", Pods: 1, Transports: []string{"veth"}},
		},
		Warnings: []string{"the container runtime of worker-2 is not known"},
	}
	return f
}

// What the nodes say takes the place of what draygen cannot measure, and nothing else.
func TestNodesJudgeWhatRecordsCannot(t *testing.T) {
	d := inCluster().load(t)
	words := map[string]verdict.Word{}
	for _, v := range d.Verdicts {
		words[v.Link+" "+v.Requirement] = v.Verdict
	}
	for want, word := range map[string]verdict.Word{"f1u latency": verdict.Met, "n3 latency": verdict.Met, "oam packet_loss_ratio": verdict.Missed} {
		if words[want] != word {
			t.Errorf("%s is %q, want %q", want, words[want], word)
		}
	}
	if len(d.Verdicts) != 7 || d.ExitCode() != 4 || len(d.Warnings) != 1 {
		t.Errorf("%d verdicts, exit code %d, warnings %q", len(d.Verdicts), d.ExitCode(), d.Warnings)
	}
	f := inCluster()
	f.run.Cluster.Links[1].Verdicts = nil
	if d := f.load(t); d.Verdicts[5].Verdict != verdict.NotMeasurable {
		t.Errorf("without the nodes: %+v", d.Verdicts[5])
	}
}

// Why a path was not measured is no record, but part of the run.
func TestPathsThatWereNotMeasured(t *testing.T) {
	f := inCluster()
	f.plan.Paths = []plan.Path{{Name: "dl", From: chain.End{Function: "upf", Port: "n3"}, To: chain.End{Function: "cu-up", Port: "n3"}, Requires: chain.Requires{Latency: units.Duration(time.Millisecond), Percentile: 99},
		Steps: []chain.Step{{Link: "n3", Out: chain.End{Function: "upf", Port: "n3"}, In: chain.End{Function: "cu-up", Port: "n3"}}}}}
	f.run.Cluster.Unmeasured = []verdict.Verdict{{Link: "dl", Requirement: "latency", Verdict: verdict.NotMeasurable, Reason: "pod x cannot be copied", Path: true}}
	f.run.Cluster.Copied = []string{"site-dray-verify-du on worker-1"}
	d := f.load(t)
	if v := d.Verdicts[len(d.Verdicts)-2]; len(d.Verdicts) != 8 || v.Link != "dl" || v.Reason != "pod x cannot be copied" {
		t.Errorf("%+v", d.Verdicts)
	}
	if html := page(t, f); !strings.Contains(html, "site-dray-verify-du on worker-1: their programs passed packets on") || !strings.Contains(html, "od x cannot be copied") {
		t.Error("the page lacks the reason, or the copied pods")
	}
	if got := d.Run.Command(); got != "kubectl dray verify f1-split -n ran --active --paths" {
		t.Error(got)
	}
}

// One page has the nodes, the pods, the links and the verdicts.
func TestPageOfACluster(t *testing.T) {
	html := page(t, inCluster())
	last := 0
	for _, want := range []string{
		"Drayage on Kubernetes", "1 missed, 6 met", "lab", "worker-1, worker-2", `id="h-verdicts"`, "Judged by the nodes, of the chain's own traffic: n3 latency, oam packet_loss_ratio.", `id="h-topology"`, "function upf, site-dray-verify-upf, on worker-2",
		`id="link-1"`, "Pod of du.f1u", "site-dray-verify-du on worker-1", `id="link-2"`, `id="h-pods"`, "bridge", "du.mgmt", `id="h-nodes"`, "AMD EPYC 9354P", "containerd://2.2.0",
		"What the nodes", "40us", "9Gbps", `id="h-method"`, "chain ran/site-dray-verify, a copy of chain f1-split", "registry.example/draygen:0.2.0", "quick",
		"f1u: both ends are on one node", "n3, oam: draygen measures no delay", `id="h-phases"`, `id="h-machine"`, `id="h-records"`,
	} {
		at := strings.Index(html[last:], strings.ReplaceAll(want, "'", "&#39;"))
		if at < 0 {
			t.Errorf("%q is missing, or not in its place", want)
			continue
		}
		last += at
	}
	for _, never := range []string{"CPUs busy during", "Load average", `id="h-functions"`} {
		if strings.Contains(html, never) {
			t.Errorf("the page has %q, and how busy a node was is not known", never)
		}
	}
}

func TestTextOfACluster(t *testing.T) {
	var b bytes.Buffer
	testenv.Must(t, inCluster().load(t).Document().Text(&b, 100))
	for _, want := range []string{"Pods\n", "n3    vxlan      cu-up.n3   site-dray-verify-cu-up  worker-1\n", "Nodes\n", "worker-2", "packet_loss_ratio"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, b.String())
		}
	}
	f := inCluster()
	f.run.Cluster.Links[2].Verdicts[0].Verdict = verdict.NotMeasurable
	b.Reset()
	testenv.Must(t, f.load(t).Document().Text(&b, 0))
	if !strings.Contains(b.String(), "`kubectl dray verify f1-split -n ran --active --profile thorough` measures longest") {
		t.Errorf("it does not say how to measure longer:\n%s", b.String())
	}
}

// Whatever a cluster says is text on the page and on a terminal.
func TestHostileClusterIsEscaped(t *testing.T) {
	f := inCluster()
	c := f.run.Cluster
	c.Context, c.Namespace, c.Copy, c.Image, c.Warnings = hostile, hostile, hostile, hostile, []string{hostile}
	for i := range c.Links {
		l := &c.Links[i]
		l.Transport = hostile
		for j := range l.Ends {
			l.Ends[j] = ClusterEnd{Function: hostile, Port: hostile, Pod: hostile, Node: hostile}
		}
		for j := range l.Verdicts {
			l.Verdicts[j] = verdict.Verdict{Requirement: hostile, Verdict: hostile, Required: verdict.Figure{Text: hostile}, Basis: hostile, Reason: hostile, Needs: hostile, Method: hostile, Marks: []string{hostile}}
		}
	}
	c.Links = append(c.Links, ClusterLink{Name: hostile}, ClusterLink{Ends: []ClusterEnd{{}, {Function: hostile}}})
	for i := range c.Nodes {
		c.Copied, c.Unmeasured = []string{hostile}, []verdict.Verdict{{Link: hostile, Requirement: hostile, Verdict: hostile, Reason: hostile, Needs: hostile}}
		c.Nodes[i] = ClusterNode{Name: hostile, Kernel: hostile, OS: hostile, CPUModel: hostile, Runtime: hostile, Fault: hostile, Transports: []string{hostile},
			Calibration: []inventory.Calibration{{Transport: hostile, Stale: hostile, Marks: []string{hostile}}}}
	}
	html := page(t, f)
	for _, bad := range []string{"<script", "<img"} {
		if strings.Contains(html, bad) {
			t.Errorf("%q reaches the page as markup", bad)
		}
	}
	if n := strings.Count(html, "&lt;script&gt;alert(1)"); n < 40 {
		t.Errorf("the hostile text is only %d times on the page", n)
	}
	f.run.Cluster.Nodes[0].Name = "\x1b[2J"
	var b bytes.Buffer
	testenv.Must(t, f.load(t).Document().Text(&b, 0))
	if strings.Contains(b.String(), "\x1b") {
		t.Error("the terminal is controlled")
	}
}

func TestPageOfAClusterInBrowser(t *testing.T) {
	testenv.Program(t, "chromium")
	text := page(t, inCluster())
	seen := browse(t, frame{text, 390}, frame{text, 768}, frame{text, 1440}, onPaper(text))
	for i, what := range []string{"390 px", "768 px", "1440 px", "paper"} {
		has(t, what, seen[i], map[string]string{"overflow": "0", "outside": "", "small": "0", "clipped": "", "headline": "true", "plot": "true"})
	}
}
