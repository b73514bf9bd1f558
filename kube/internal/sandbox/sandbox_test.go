// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"k8s.io/apimachinery/pkg/types"
)

// handler notes what happens to pods.
type handler struct {
	events chan string
	refuse error
	// wait makes it as slow as its caller permits.
	wait bool
}

func (h *handler) PodStarts(ctx context.Context, pod types.UID) error {
	h.events <- "starts " + string(pod)
	if h.wait {
		<-ctx.Done()
		return ctx.Err()
	}
	return h.refuse
}
func (h *handler) PodStopped(pod types.UID) { h.events <- "stopped " + string(pod) }
func (h *handler) PodsKnown()               { h.events <- "known" }

func (h *handler) happened() (all []string) {
	for {
		select {
		case e := <-h.events:
			all = append(all, e)
		case <-time.After(100 * time.Millisecond):
			return all
		}
	}
}

// of is a sandbox as the runtime describes it; netns "" is one in the node's network.
func of(pod, id, netns string) *api.PodSandbox {
	namespaces := []*api.LinuxNamespace{{Type: "pid"}}
	if netns != "" {
		namespaces = append(namespaces, &api.LinuxNamespace{Type: "network", Path: netns})
	}
	return &api.PodSandbox{Id: id, Uid: pod, Name: pod, Linux: &api.LinuxPodSandbox{Namespaces: namespaces}}
}

func newPlugin() (*plugin, *handler) {
	h := &handler{events: make(chan string, 100)}
	return &plugin{New("/nowhere", slog.New(slog.DiscardHandler)), h}, h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A pod's namespace is known before it starts, until its sandbox stops.
func TestAPodStartsAndStops(t *testing.T) {
	p, h := newPlugin()
	must(t, p.RunPodSandbox(t.Context(), of("a", "1", "/var/run/netns/a1")))
	if got := p.w.Netns("a"); got != "/var/run/netns/a1" {
		t.Errorf("the namespace is %q", got)
	}
	// Its next sandbox starts; that the earlier one stops says nothing about the pod.
	must(t, p.RunPodSandbox(t.Context(), of("a", "2", "/var/run/netns/a2")))
	must(t, p.StopPodSandbox(t.Context(), of("a", "1", "")))
	if got := p.w.Netns("a"); got != "/var/run/netns/a2" {
		t.Errorf("after another sandbox stopped: %q", got)
	}
	must(t, p.StopPodSandbox(t.Context(), of("a", "2", "")))
	if got := p.w.Netns("a"); got != "" {
		t.Errorf("after it stopped: %q", got)
	}
	if got := h.happened(); !slices.Equal(got, []string{"starts a", "starts a", "stopped a"}) {
		t.Errorf("%q", got)
	}
	must(t, p.RunPodSandbox(t.Context(), of("host", "3", "")))
	if got := p.w.Netns("host"); got != "" {
		t.Errorf("a pod in the node's network has the namespace %q", got)
	}
}

func TestAPodThatIsRefused(t *testing.T) {
	p, h := newPlugin()
	h.refuse = errors.New("no interface")
	if err := p.RunPodSandbox(t.Context(), of("a", "1", "/var/run/netns/a1")); err == nil || err.Error() != "dray-node: no interface" {
		t.Errorf("%v", err)
	}
	if got := p.w.Netns("a"); got != "" {
		t.Errorf("a pod that did not start has the namespace %q", got)
	}
}

// The runtime drops a plugin that is slow, and starts the pod without it.
func TestAnAnswerComesInTime(t *testing.T) {
	p, h := newPlugin()
	h.wait = true
	start := time.Now()
	if err := p.RunPodSandbox(t.Context(), of("a", "1", "/var/run/netns/a1")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if took := time.Since(start); took >= api.DefaultPluginRequestTimeout {
		t.Errorf("after %v", took)
	}
}

// After a restart, the pods that run are known at once, and nothing of others.
func TestPodsThatRunAlready(t *testing.T) {
	p, h := newPlugin()
	must(t, p.RunPodSandbox(t.Context(), of("old", "0", "/var/run/netns/old")))
	if p.w.isConnected() {
		t.Error("connected before the runtime said which pods run")
	}
	_, err := p.Synchronize(t.Context(), []*api.PodSandbox{of("a", "1", "/var/run/netns/a1"), of("a", "0", ""), of("host", "3", "")}, nil)
	must(t, err)
	if !p.w.isConnected() || p.w.Netns("a") != "/var/run/netns/a1" || p.w.Netns("old") != "" || p.w.Netns("host") != "" {
		t.Errorf("%+v", p.w.pods)
	}
	if got := h.happened(); !slices.Equal(got, []string{"starts old", "known"}) {
		t.Errorf("%q", got)
	}
}

// Without a runtime, it is not connected, says so once, and ends when it should.
func TestNoRuntime(t *testing.T) {
	var log strings.Builder
	w := New(filepath.Join(t.TempDir(), "nri.sock"), slog.New(slog.NewTextHandler(&log, nil)))
	ctx, cancel := context.WithTimeout(t.Context(), 3*again)
	defer cancel()
	w.Run(ctx, &handler{})
	if w.isConnected() || strings.Count(log.String(), "NRI is away") != 1 {
		t.Errorf("connected %v: %s", w.isConnected(), log.String())
	}
}
