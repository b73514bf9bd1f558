// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/manifest"
)

// TestExamples exports every example. Those with something that no pod has are refused.
func TestExamples(t *testing.T) {
	exported := 0
	for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
		files, err := filepath.Glob(filepath.Join("../../../examples", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files, error %v", pattern, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			switch _, err := manifest.Make(file, data); {
			case err == nil:
				exported++
			case !strings.Contains(err.Error(), "pods have no host interface") && !strings.Contains(err.Error(), "no simulated hosts"):
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if exported == 0 {
		t.Error("no example can be exported")
	}
}

const head = "apiVersion: drayage/v1\nkind: Chain\nname: c\n"

// two is a chain of two functions, with more fields for the function a, its port and the
// link.
func two(function, port, link string) string {
	return head + fmt.Sprintf(`functions:
  - name: a
    ports: [{name: p0, face: native%s}]%s
  - name: b
    ports: [{name: p0, face: native}]
links:
  - {name: ab, ends: [a.p0, b.p0]%s}
`, port, function, link)
}

func TestManifest(t *testing.T) {
	text := two("\n    image: debian:12 # the base\n    runtime: docker\n    env: {A: b}", ", queues: 2", ", requires: {latency: 1ms, percentile: p99.9, packet_loss_ratio: 0.01%}")
	m, err := manifest.Make("c.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := `# Made by ` + "`dray export --kubernetes c.yaml`" + `.
# Left out, because a pod decides it:
#   a: image, runtime, env
#
# A pod gets the ports of a function from a claim: interfaces, or sockets below /run/dray/ports.
#   spec:
#     resourceClaims: [{name: ports, resourceClaimTemplateName: c-a}]
#     containers: [{name: main, resources: {claims: [{name: ports}]}}]
# The operator makes the templates: c-a, c-b.
# Native and dpdk ports of a link share memory if their pods are on one node: use podAffinity.
apiVersion: drayage.io/v1alpha1
kind: Chain
metadata:
  name: c
spec:
  functions:
    - name: a
      ports: [{name: p0, face: native, queues: 2}]
    - name: b
      ports: [{name: p0, face: native}]
  links:
    - {name: ab, ends: [a.p0, b.p0], requires: {latency: 1ms, percentile: 99.9, packet_loss_ratio: 0.0001}}
`
	if m.YAML != want {
		t.Errorf("got\n%s\nwant\n%s", m.YAML, want)
	}
}

// The instances of a function share a template.
func TestManifestOfInstances(t *testing.T) {
	m, err := manifest.Make("c.yaml", []byte(two("\n    instances: 3", "", "")))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"templates: c-a, c-b.\n", "instances: 3\n"} {
		if !strings.Contains(m.YAML, want) {
			t.Errorf("no %q in\n%s", want, m.YAML)
		}
	}
}

func TestManifestHasNoAliases(t *testing.T) {
	text := head + `functions:
  - {name: a, env: &e {X: y}, ports: [&p {name: p0, face: native}]}
  - {name: on, env: *e, ports: [*p]}
links:
  - {name: ab, ends: [a.p0, on.p0], requires: &r {latency: 1ms}}
`
	m, err := manifest.Make("c.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(strings.Split(m.YAML, "apiVersion:")[1], "&*") {
		t.Errorf("an alias is left:\n%s", m.YAML)
	}
	if !strings.Contains(m.YAML, `name: "on"`) {
		t.Errorf("YAML 1.1 would read the name as true:\n%s", m.YAML)
	}
}

func TestCommentsStayComments(t *testing.T) {
	m, err := manifest.Make("a\nkind: Secret", []byte(two("", "", "")))
	if err != nil || strings.Contains(m.YAML, "\nkind: Secret") {
		t.Errorf("the file's name ends the comment: error %v\n%s", err, m.YAML)
	}
}

// Pods have traffic classes, and queues of user space, as functions of a host.
func TestClassesAreExported(t *testing.T) {
	m, err := manifest.Make("c.yaml", []byte(two("", ", qos: {qdisc: slot, slot: 1ms}", ", transport: shm, qos: {qdisc: prio, classes: [{name: all, dscp: [46], child: {qdisc: codel}}]}")))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"slot: 1ms", "dscp: [46]", "qdisc: codel"} {
		if !strings.Contains(m.YAML, want) {
			t.Errorf("no %q in\n%s", want, m.YAML)
		}
	}
}

// TestDPDK: an export says how a DPDK application of a pod finds its ports.
func TestDPDK(t *testing.T) {
	const hint = "#   command: [/run/dray/bin/dray-eal, "
	for face, want := range map[string]bool{"native": false, "dpdk": true} {
		m, err := manifest.Make("c.yaml", []byte(strings.Replace(two("", "", ""), "native", face, 1)))
		if err != nil || strings.Contains(m.YAML, hint) != want || !strings.Contains(m.YAML, "face: "+face) {
			t.Errorf("%s: %v\n%s", face, err, m.YAML)
		}
	}
}

func TestWhatPodsCannotHave(t *testing.T) {
	var ports, ends strings.Builder
	for i := range 33 {
		fmt.Fprintf(&ports, "{name: p%d, face: native}, ", i)
		fmt.Fprintf(&ends, "  - {name: l%d, ends: [a.p%d, b.p%[1]d]}\n", i, i)
	}
	many := head + "functions: [{name: a, ports: [" + ports.String() + "]}, {name: b, ports: [" + ports.String() + "]}]\nlinks:\n" + ends.String()
	for name, c := range map[string]struct{ text, want string }{
		"uplink":      {strings.Replace(two("", "", ""), "b.p0]", "{uplink: eth0}]", 1), "the link ends at uplink:eth0"},
		"no link":     {strings.Replace(two("", "", ""), "b.p0]", "{uplink: eth0}]", 1), "the port p0 is on no link; add a link to it"},
		"privileged":  {two("", "", "") + "policy: {privileged: true}\n", "c.yaml: no transport that pods can have needs privileges; remove privileged"},
		"hosts":       {strings.Replace(two("\n    host: h", "", ""), "name: b\n", "name: b\n    host: i\n", 1) + "hosts: {names: [h, i]}\n", "no simulated hosts"},
		"many ports":  {many, "33 ports are more than the limit of 32 in Kubernetes; split the chain"},
		"not a chain": {"kind: Chain\n", `a chain needs the field "apiVersion"`},
	} {
		if _, err := manifest.Make("c.yaml", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}
