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
	until  time.Time // when the last pod must have started; zero: no limit
}

func (h *handler) PodStarts(ctx context.Context, pod types.UID) error {
	h.until, _ = ctx.Deadline()
	h.events <- "starts " + string(pod)
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
	must(t, p.RunPodSandbox(t.Context(), of("a", "1", "/var/run/netns/a1")))
	if left := time.Until(h.until); h.until.IsZero() || left > startTimeout || startTimeout >= api.DefaultPluginRequestTimeout {
		t.Errorf("the handler may take %v, and the runtime waits for %v", left, api.DefaultPluginRequestTimeout)
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
	log := make(lines, 100)
	w := New(filepath.Join(t.TempDir(), "nri.sock"), slog.New(slog.NewTextHandler(log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx, &handler{})
	}()
	const away = "NRI is away"
	for !strings.Contains(<-log, away) {
	}
	time.Sleep(3 * again) // it tries again meanwhile
	cancel()
	<-ended
	close(log)
	for line := range log {
		if strings.Contains(line, away) {
			t.Errorf("again: %s", line)
		}
	}
	if w.isConnected() {
		t.Error("it is connected")
	}
}

// lines are those of a log.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}
