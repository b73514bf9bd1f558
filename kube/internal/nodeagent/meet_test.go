// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	cdi "tags.cncf.io/container-device-interface/specs-go"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/meet"
)

// memifPort makes a claim's link one of memif.
func memifPort(_ *corev1.Pod, p *v1alpha1.PortParameters) {
	p.Link.Transport = "memif"
	for i := range p.Link.Ends {
		p.Link.Ends[i].Face, p.Link.Ends[i].Backend = chain.FaceDPDK, ""
	}
}

// memifFixture has a driver's files and a broker that arranges meetings.
func memifFixture(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.withFiles().install()
	deadline := time.Now().Add(time.Minute)
	for {
		conn, err := net.Dial("unix", filepath.Join(f.agent.links.meet, "control"))
		if err == nil {
			_ = conn.Close()
			return f
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		must(t, host.Sleep(t.Context(), 10*time.Millisecond))
	}
}

// Two pods of a memif link have sockets at which they meet; the first in the order of the names
// shows its socket. Each container has a small file system of its own, and no directory is in both.
func TestPodsOfMemifMeet(t *testing.T) {
	f := memifFixture(t)
	cu, du := f.claim("cu-up", memifPort), f.claim("du", memifPort)
	must(t, errors.Join(f.prepare(cu), f.prepare(du)))
	if all, err := f.broker.Status(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("the broker makes links: %+v, %v", all, err)
	}
	f.agent.reportAll(t.Context())
	f.reports("both are prepared", "memif")
	dir := map[string]string{}
	for name, want := range map[string]string{"cu-up": "role=server,", "du": "role=client,"} {
		c := cu
		if name == "du" {
			c = du
		}
		text, err := os.ReadFile(f.agent.specs.file(c.UID))
		must(t, err)
		var spec cdi.Spec
		must(t, json.Unmarshal(text, &spec))
		edits := spec.Devices[0].ContainerEdits
		if !strings.Contains(edits.Env[0], want) || !strings.Contains(edits.Env[0], `"dir":"/run/dray/links/f1u"`) {
			t.Errorf("%s: %s", name, edits.Env)
		}
		last := edits.Mounts[len(edits.Mounts)-1]
		if last.Type != "tmpfs" || last.ContainerPath != dpdk.LinksInside || !slices.Contains(last.Options, "size=64k") || !slices.Contains(last.Options, "nr_inodes=64") {
			t.Errorf("%s: %+v", name, last)
		}
		for _, m := range edits.Mounts[:len(edits.Mounts)-1] {
			if !slices.Contains(m.Options, "ro") {
				t.Errorf("%s: %s may be written to", name, m.HostPath)
			}
		}
		dir[name] = edits.Mounts[0].HostPath
	}
	ctx, stop := context.WithCancel(t.Context())
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unixpacket", path)
	must(t, err)
	defer l.Close()
	ended := make(chan error, 1)
	go func() {
		ended <- meet.Show(ctx, filepath.Join(dir["cu-up"], "f1u"), path, func(context.Context) error { return nil })
	}()
	shown, err := meet.Look(ctx, filepath.Join(dir["du"], "f1u"))
	must(t, err)
	if shown.Path != path {
		t.Errorf("du sees %s", shown.Path)
	}
	must(t, shown.Close())
	stop()
	must(t, <-ended)
	must(t, errors.Join(f.agent.unprepare(t.Context(), cu.UID), f.agent.unprepare(t.Context(), du.UID)))
	f.nothingLeft()
}

// A broker that is too old for meetings prevents only the links that need them.
func TestABrokerWithoutMeetings(t *testing.T) {
	f := memifFixture(t)
	must(t, os.Remove(filepath.Join(f.agent.links.meet, "control")))
	if err := f.prepare(f.claim("du", memifPort)); !errors.Is(err, meet.ErrAbsent) {
		t.Errorf("memif: %v", err)
	}
	must(t, f.agent.unprepare(t.Context(), "claim-du"))
	must(t, f.prepare(f.claim("cu-up")))
}

// Links that memif cannot make are refused.
func TestMemifLinksThatCannotWork(t *testing.T) {
	for want, change := range map[string]func(*corev1.Pod, *v1alpha1.PortParameters){
		"port cu-up.f1u is no device of DPDK": func(_ *corev1.Pod, p *v1alpha1.PortParameters) { p.Link.Ends[0].Face = chain.FaceNative },
		"both its ports belong to function du": func(_ *corev1.Pod, p *v1alpha1.PortParameters) {
			p.Link.Ends[0].Function, p.Link.Ends[0].Port = "du", "other"
		},
	} {
		f := memifFixture(t)
		if err := f.prepare(f.claim("du", memifPort, change)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Requirements of a memif link stay undecided, and say why.
func TestNothingCountsMemif(t *testing.T) {
	f := memifFixture(t)
	must(t, f.prepare(f.claim("du", memifPort)))
	all, err := f.agent.store.List(t.Context())
	must(t, err)
	why := notCounted(&all[0].Ports[0].Link)
	got := conditionsOf(&all[0].Ports[0], nil, why)
	if len(got) != 2 || got[1].Type != "latency" || got[1].Status != "Unknown" || got[1].Reason != v1alpha1.ReasonNotMeasurable ||
		why == "" || !strings.Contains(got[1].Message, why) {
		t.Errorf("%+v", got)
	}
}
