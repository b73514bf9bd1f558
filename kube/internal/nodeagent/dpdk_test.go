// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	cdi "tags.cncf.io/container-device-interface/specs-go"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/manifest"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/eal"
)

// withFiles gives the agent an image with a driver for DPDK 22.11.
func (f *fixture) withFiles() dpdkFiles {
	f.t.Helper()
	d := dpdkFiles{image: f.t.TempDir(), node: f.t.TempDir()}
	for _, file := range []string{filepath.Join(binFolder, eal.Program), filepath.Join(libFolder, "23", dpdk.DriverFile)} {
		must(f.t, os.MkdirAll(filepath.Dir(filepath.Join(d.image, file)), 0o755))
		must(f.t, os.WriteFile(filepath.Join(d.image, file), []byte("one"), 0o644))
	}
	f.agent.specs.dpdk = d
	return d
}

// dpdkPort makes the port of a claim's link a dpdk port.
func dpdkPort(_ *corev1.Pod, p *v1alpha1.PortParameters) {
	for i := range p.Link.Ends {
		p.Link.Ends[i].Face = chain.FaceDPDK
	}
}

func TestADPDKApplicationGetsItsFiles(t *testing.T) {
	f := newFixture(t)
	d := f.withFiles()
	du := f.claim("du", dpdkPort)
	if err := f.prepare(du); err == nil || !strings.Contains(err.Error(), "this node cannot serve dpdk ports") {
		t.Errorf("before the files are there: %v", err)
	}
	if item := d.install(); item.Status != inventory.OK || item.Version != "DPDK 22.11" {
		t.Errorf("%+v", item)
	}
	must(t, f.prepare(du))
	data, err := os.ReadFile(f.agent.specs.file(du.UID))
	must(t, err)
	var spec cdi.Spec
	must(t, json.Unmarshal(data, &spec))
	edits := spec.Devices[0].ContainerEdits
	var at []string
	for _, m := range edits.Mounts {
		at = append(at, m.ContainerPath)
		if _, err := os.Stat(m.HostPath); err != nil || !strings.Contains(strings.Join(m.Options, " "), "ro nosuid nodev") {
			t.Errorf("%+v, %v", m, err)
		}
	}
	if !reflect.DeepEqual(at, []string{"/run/dray/ports", "/run/dray/bin", "/run/dray/lib"}) {
		t.Errorf("mounts at %v", at)
	}
	const env = `DRAY_DPDK={"vdevs":[{"function":"du","port":"f1u","driver":"net_dray","options":"port=f1u"}]}`
	if !reflect.DeepEqual(edits.Env, []string{env}) {
		t.Errorf("got  %s\nwant %s", edits.Env, env)
	}
	f.link()
}

// The limits of an application are those of its container, or of its pod.
func TestTheSettingHasTheLimits(t *testing.T) {
	for name, c := range map[string]struct {
		own, pod map[string]string
		qos      corev1.PodQOSClass
		want     eal.Setting
	}{
		"none": {want: eal.Setting{}},
		"its own": {own: map[string]string{"memory": "512Mi", "cpu": "1500m"}, pod: map[string]string{"memory": "2Gi"}, qos: corev1.PodQOSGuaranteed,
			want: eal.Setting{Memory: 512 << 20, CPUs: 2}},
		"the pod's": {pod: map[string]string{"memory": "2Gi"}, own: map[string]string{"cpu": "2"}, qos: corev1.PodQOSBurstable,
			want: eal.Setting{Memory: 2 << 30, CPUs: 2}},
		"whole CPUs": {own: map[string]string{"cpu": "3"}, qos: corev1.PodQOSGuaranteed, want: eal.Setting{CPUs: 3, Whole: true}},
		"huge pages": {own: map[string]string{"hugepages-1Gi": "1Gi", "hugepages-2Mi": "64Mi", "hugepages-64Ki": "0"},
			want: eal.Setting{HugePages: []chain.HugePages{{Size: 2 << 20, Limit: 64 << 20}, {Size: 1 << 30, Limit: 1 << 30}}}},
	} {
		f := newFixture(t, true)
		claim := f.claim("du", dpdkPort)
		pod, err := f.agent.podOf(t.Context(), claim)
		must(t, err)
		pod.Status.QOSClass = c.qos
		pod.Spec.Containers[0].Resources.Limits = quantities(c.own)
		if c.pod != nil {
			pod.Spec.Resources = &corev1.ResourceRequirements{Limits: quantities(c.pod)}
		}
		got, err := read(claim, pod, "")
		must(t, err)
		c.want.Vdevs = got.DPDK.Vdevs
		if !reflect.DeepEqual(*got.DPDK, c.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, *got.DPDK, c.want)
		}
	}
}

func quantities(texts map[string]string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, text := range texts {
		list[corev1.ResourceName(name)] = resource.MustParse(text)
	}
	return list
}

func TestDPDKPodsThatCannotWork(t *testing.T) {
	for want, change := range map[string]func(*corev1.Pod, *v1alpha1.PortParameters){
		"2 containers of pod du use claim du-ports, which has dpdk ports": func(p *corev1.Pod, _ *v1alpha1.PortParameters) {
			addContainer(p, *p.Spec.SecurityContext.RunAsUser)
		},
		"memory 32Mi is too little": func(p *corev1.Pod, _ *v1alpha1.PortParameters) {
			p.Spec.Containers[0].Resources.Limits = quantities(map[string]string{"memory": "32Mi"})
		},
	} {
		f := newFixture(t)
		f.withFiles().install()
		if err := f.prepare(f.claim("du", dpdkPort, change)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A new version of the files is for containers that start later.
func TestANewDriverDoesNotTouchTheOld(t *testing.T) {
	d := newFixture(t, true).withFiles()
	d.install()
	old, err := os.Open(filepath.Join(d.node, libFolder, "23", dpdk.DriverFile))
	must(t, err)
	defer old.Close()
	must(t, os.WriteFile(filepath.Join(d.image, libFolder, "23", dpdk.DriverFile), []byte("two"), 0o644))
	d.install()
	text := make([]byte, 8)
	n, err := old.Read(text)
	now, err2 := os.ReadFile(old.Name())
	if err != nil || err2 != nil || string(text[:n]) != "one" || string(now) != "two" {
		t.Errorf("old %q, now %q, %v, %v", text[:n], now, err, err2)
	}
	entries, err := os.ReadDir(filepath.Dir(old.Name()))
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// An image without a driver, or a node that cannot run it, says so to the planner.
func TestWhyANodeHasNoDriver(t *testing.T) {
	d := newFixture(t, true).withFiles()
	must(t, os.RemoveAll(filepath.Join(d.image, libFolder)))
	if item := d.install(); item.Status != inventory.Missing || item.Reason != "the image of dray-node has none" || item.Fix == "" {
		t.Errorf("%+v", item)
	}
}

// A chain that names another transport of DPDK gets it, or learns why pods have none.
func TestTransportsOfDPDK(t *testing.T) {
	d := newFixture(t, true).withFiles()
	inv, err := inspect(t.Context(), offers{})
	must(t, err)
	d.describe(inv)
	if got := inv.Transport("memif"); got.Status != inventory.OK || got.Caps.Rank <= inv.Transport("shm").Caps.Rank {
		t.Errorf("%+v", got)
	}
	const spec = `{"functions": [{"name": "a", "ports": [{"name": "p", "face": "dpdk"}]}, {"name": "b", "ports": [{"name": "p", "face": "dpdk"}]}],
		"links": [{"name": "ab", "ends": ["a.p", "b.p"], "transport": %q}]}`
	for transport, want := range map[string]string{"auto": "", "memif": "", "ovs-dpdk": "kubectl apply -k kube/deploy/switch",
		"vhost-user": "a switch of its own; use transport: ovs-dpdk"} {
		c, err := manifest.Parse("c", fmt.Appendf(nil, spec, transport))
		must(t, err)
		inv.Runtimes = []inventory.Item{{Name: string(chain.RuntimeExternal), Status: inventory.OK}}
		p, err := plan.Make(c, inv)
		if chosen := strings.Replace(transport, "auto", "shm", 1); want == "" && (err != nil || p.Links[0].Transport != chosen) || want != "" && (err == nil || !strings.Contains(p.Violations[0].String(), want)) {
			t.Errorf("%s: %v, %+v", transport, err, p.Violations)
		}
	}
}

// The profile lets EAL bind huge pages, and no more than a container may otherwise.
func TestTheSeccompProfileForHugePages(t *testing.T) {
	dir := t.TempDir()
	must(t, writeProfile(dir))
	text, err := os.ReadFile(filepath.Join(dir, "drayage/dpdk.json"))
	must(t, err)
	var profile struct {
		DefaultAction string
		Architectures []string
		Syscalls      []struct {
			Names  []string
			Action string
			Args   []any
		}
	}
	must(t, json.Unmarshal(text, &profile))
	allowed := map[string]bool{}
	for _, s := range profile.Syscalls {
		for _, name := range s.Names {
			allowed[name] = allowed[name] || s.Action == "SCMP_ACT_ALLOW" && len(s.Args) == 0
		}
	}
	for call, want := range map[string]bool{"read": true, "mbind": true, "set_mempolicy": true, "get_mempolicy": true, "mount": false, "bpf": false, "setsockopt": false} {
		if allowed[call] != want {
			t.Errorf("%s: %v", call, allowed[call])
		}
	}
	if profile.DefaultAction != "SCMP_ACT_ERRNO" || len(profile.Architectures) != 1 {
		t.Errorf("%s, %s", profile.DefaultAction, profile.Architectures)
	}
}
