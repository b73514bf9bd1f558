// SPDX-License-Identifier: Apache-2.0

// Package chart tests the Helm chart: it gives the cluster the same objects as kube/deploy, and
// each of its values does what it says.
package chart

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// Folders, as seen from the module of the tools.
const (
	tools  = "../tools"
	folder = "../../deploy/helm/drayage"
	deploy = "../../deploy/"
)

// tool runs a program that the module kube/test/tools pins. go compiles it once.
func tool(arguments ...string) ([]byte, error) {
	cmd := exec.Command("go", append([]string{"tool"}, arguments...)...)
	cmd.Dir = tools
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=auto", "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = errors.New(string(exit.Stderr))
	}
	return out, err
}

// object is an object for the API server.
type object = map[string]any

// parse reads objects, by "kind namespace/name".
func parse(t *testing.T, manifests []byte) map[string]object {
	t.Helper()
	all := map[string]object{}
	for _, document := range bytes.Split(manifests, []byte("\n---\n")) {
		var o object
		if err := yaml.Unmarshal(append(document, '\n'), &o); err != nil {
			t.Fatalf("%v in %s", err, document)
		}
		if o == nil {
			continue
		}
		name := text(o, "kind") + " " + text(o, "metadata", "namespace") + "/" + text(o, "metadata", "name")
		if all[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		all[name] = o
	}
	return all
}

// field is a field of an object, by its path; a number is an index.
func field(from any, path ...any) any {
	for _, step := range path {
		switch now := from.(type) {
		case map[string]any:
			name, _ := step.(string)
			from = now[name]
		case []any:
			from = now[step.(int)]
		default:
			return nil
		}
	}
	return from
}

func text(from any, path ...any) string {
	s, _ := field(from, path...).(string)
	return s
}

// helm renders the chart in a namespace, with its definitions.
func helm(namespace string, arguments ...string) ([]byte, error) {
	return tool(append([]string{"helm", "template", "drayage", folder, "--kube-version=1.36.3", "--include-crds", "--namespace=" + namespace}, arguments...)...)
}

func mustHelm(t *testing.T, namespace string, arguments ...string) map[string]object {
	t.Helper()
	out, err := helm(namespace, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, out)
}

// kustomize renders a folder of kube/deploy in a namespace, without the namespace itself, which
// helm does not make.
func kustomize(t *testing.T, namespace, folder string) map[string]object {
	t.Helper()
	out, err := tool("kustomize", "build", deploy+folder)
	if err != nil {
		t.Fatal(err)
	}
	all := parse(t, bytes.ReplaceAll(out, []byte("dray-system"), []byte(namespace)))
	delete(all, "Namespace /"+namespace)
	return all
}

func TestLint(t *testing.T) {
	for _, monitoring := range []string{"false", "true"} {
		if out, err := tool("helm", "lint", "--strict", "--kube-version=1.36.3", "--set=switch.enabled="+monitoring+",monitoring.enabled="+monitoring, folder); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// TestTheChartIsTheBase compares every object.
func TestTheChartIsTheBase(t *testing.T) {
	for _, namespace := range []string{"dray-system", "elsewhere"} {
		want := kustomize(t, namespace, "base")
		same(t, mustHelm(t, namespace), want)
		for name, o := range kustomize(t, namespace, "monitoring") {
			want[name] = o
		}
		same(t, mustHelm(t, namespace, "--set=monitoring.enabled=true"), want)
		same(t, mustHelm(t, namespace, "--set=cni.enabled=true"), kustomize(t, namespace, "cni"))
		same(t, mustHelm(t, namespace, "--set=switch.enabled=true"), kustomize(t, namespace, "switch"))
	}
}

// same compares objects as the API server would get them.
func same(t *testing.T, got, want map[string]object) {
	t.Helper()
	if len(want) < 15 {
		t.Errorf("kustomize gives only %d objects", len(want))
	}
	for name, o := range want {
		if got[name] == nil {
			t.Errorf("the chart lacks %s", name)
		} else if diff := cmp.Diff(o, got[name]); diff != "" {
			t.Errorf("%s differs (-kube/deploy +chart):\n%s", name, diff)
		}
	}
	for name := range got {
		if want[name] == nil {
			t.Errorf("only the chart has %s", name)
		}
	}
}

func TestVersions(t *testing.T) {
	version, err := os.ReadFile("../../../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(folder + "/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(version)); c.Version != want || c.AppVersion != want {
		t.Errorf("the chart is %s of %s, the release %s", c.Version, c.AppVersion, want)
	}
}

const (
	node     = "DaemonSet dray-system/dray-node"
	operator = "Deployment dray-system/dray-operator"
)

// TestValues: each value changes its field, and where it should, every pod.
func TestValues(t *testing.T) {
	pod := func(path ...any) []any { return append([]any{"spec", "template", "spec"}, path...) }
	image := pod("containers", 0, "image")
	for _, c := range []struct {
		set, object string
		path        []any
		want        string
	}{
		{"image.registry=example.org/ran", node, image, "example.org/ran/dray-node:0.2.0"},
		{"image.tag=v7", operator, image, "dray.local/dray-operator:v7"},
		{"image.references.dray-node=example.org/n@sha256:1", node, image, "example.org/n@sha256:1"},
		{"image.references.dray-node=example.org/n@sha256:1", operator, image, "dray.local/dray-operator:0.2.0"},
		{"image.pullPolicy=Always", operator, pod("containers", 0, "imagePullPolicy"), "Always"},
		{"imagePullSecrets[0].name=registry", node, pod("imagePullSecrets"), "- name: registry"},
		{"workloads.dray-node.nodeSelector.ran=yes", node, pod("nodeSelector"), "ran: \"yes\""},
		{"workloads.dray-node.nodeSelector.ran=yes", "DaemonSet dray-system/dray-broker", pod("nodeSelector"), "null"},
		{"workloads.dray-node.tolerations[0].key=ran", node, pod("tolerations"), "- key: ran"},
		{"workloads.dray-operator.replicas=2", operator, []any{"spec", "replicas"}, "2"},
		{"workloads.dray-node.resources.driver.requests.cpu=50m", node, pod("containers", 0, "resources"), "requests:\n  cpu: 50m"},
		{"cni.enabled=true,cni.directory=/cni", node, pod("containers", 0, "args"), "- --cni=/cni"},
		{"switch.enabled=true,workloads.dray-switch.resources.switch.requests.cpu=1", "DaemonSet dray-system/dray-switch", pod("containers", 0, "resources"), "requests:\n  cpu: 1"},
		{"monitoring.labels.release=p,monitoring.enabled=true", "PodMonitor dray-system/dray-node", []any{"metadata", "labels", "release"}, "p"},
	} {
		o := mustHelm(t, "dray-system", "--set="+c.set)[c.object]
		data, err := yaml.Marshal(field(o, c.path...))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(data)); got != c.want {
			t.Errorf("--set %s: %s has %q, want %q", c.set, c.object, got, c.want)
		}
	}
}

// TestEveryImageIsSet: a container that somebody adds is pulled from the registry, too.
func TestEveryImageIsSet(t *testing.T) {
	seen := 0
	for name, o := range mustHelm(t, "dray-system", "--set=switch.enabled=true,image.registry=example.org,image.tag=v7") {
		for _, kind := range []string{"containers", "initContainers"} {
			containers, _ := field(o, "spec", "template", "spec", kind).([]any)
			for _, c := range containers {
				seen++
				if image := text(c, "image"); !strings.HasPrefix(image, "example.org/dray-") || !strings.HasSuffix(image, ":v7") {
					t.Errorf("%s runs %s", name, image)
				}
			}
		}
	}
	if seen < 3 {
		t.Errorf("%d containers", seen)
	}
}

func TestValuesThatMeanNothingAreRefused(t *testing.T) {
	for set, why := range map[string]string{
		"workloads.dray-nod.replicas=2":                    "there is no such DaemonSet or Deployment",
		"workloads.dray-node.replicas=2":                   "it is a DaemonSet",
		"workloads.dray-node.resources.x.requests.cpu=1":   "the containers are driver",
		"workloads.dray-node.resource.driver.limits.cpu=1": "'resource' not allowed",
		"image.references.dray-nod=x":                      "there is no such image",
		"image.pullPolicy=Sometimes":                       "must be one of",
		"cni.directory=cni/bin":                            "'^/'",
		"workloads.dray-switch.nodeSelector.ran=yes":       "there is no such DaemonSet or Deployment",
		"switch.on=true":                                   "'on' not allowed",
		"monitorings.enabled=true":                         "'monitorings' not allowed",
	} {
		_, err := helm("dray-system", "--set="+set)
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("--set %s: %v, want %q", set, err, why)
		}
	}
	if _, err := helm("dray-system", "--kube-version=1.33.0"); err == nil || !strings.Contains(err.Error(), "incompatible") {
		t.Errorf("an old cluster: %v", err)
	}
}
