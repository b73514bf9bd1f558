// SPDX-License-Identifier: Apache-2.0

// Package sandbox knows the network namespace of each pod of a node, and acts before the
// containers of a pod start. The container runtime reports both (Node Resource
// Interface, NRI), or the CNI plugin dray-cni.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/internal/host"
)

// Socket is where container runtimes serve NRI by default.
const Socket = "/var/run/nri/nri.sock"

// Handler acts on the pods of a node.
type Handler interface {
	// PodStarts runs before any container of the pod. With an error the pod does not
	// start, and the kubelet tries again.
	PodStarts(ctx context.Context, pod types.UID) error
	// PodStopped runs when the pod has lost its namespace. It may get another one.
	PodStopped(pod types.UID)
	// PodsKnown runs once the pods that run already are known.
	PodsKnown()
}

// Watcher is connected to the container runtime of a node, by NRI.
type Watcher struct {
	socket string
	log    *slog.Logger

	mu        sync.Mutex
	connected bool
	pods      map[types.UID]pod
}

// pod is the latest sandbox of a pod.
type pod struct {
	id    string // of the sandbox
	netns string // file of its network namespace; "": it has that of the node
}

// New is a watcher that is not connected yet.
func New(socket string, log *slog.Logger) *Watcher {
	return &Watcher{socket: socket, log: log, pods: map[types.UID]pod{}}
}

// Netns is the network namespace of a pod, a file of the node. "": it is not known, or
// that of the node.
func (w *Watcher) Netns(uid types.UID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pods[uid].netns
}

// Patience with a container runtime that starts, and with this program's own connection.
const (
	runtimePatience = 15 * time.Second
	runtimePause    = 50 * time.Millisecond
)

// ErrNoNRI says that nobody would give a pod its interfaces.
var ErrNoNRI = errors.New("the container runtime of this node accepts no NRI plugin, so the pod would have no interface: " +
	"enable NRI (in containerd's configuration, disable = false in plugins.'io.containerd.nri.v1.nri') and start it again, or install dray-cni")

// Expect waits until the runtime reports pods before it starts their containers.
func (w *Watcher) Expect(ctx context.Context, _ types.UID) error {
	deadline := time.Now().Add(runtimePatience)
	for !w.isConnected() {
		if err := host.Sleep(ctx, runtimePause); err != nil || time.Now().After(deadline) {
			return fmt.Errorf("%w (socket %s)", ErrNoNRI, w.socket)
		}
	}
	return nil
}

func (w *Watcher) isConnected() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.connected
}

// again is the time until another try to connect.
const again = 500 * time.Millisecond

// Run serves the runtime until ctx ends. A runtime that is away or starts again is waited for.
func (w *Watcher) Run(ctx context.Context, h Handler) {
	last := ""
	for ctx.Err() == nil {
		err := w.connect(ctx, h)
		w.setConnected(false)
		if text := fmt.Sprint(err); ctx.Err() == nil && text != last {
			w.log.Error("the container runtime's NRI is away; until it is back, no pod with interfaces starts", "socket", w.socket, "error", err)
			last = text
		}
		if host.Sleep(ctx, again) != nil {
			return
		}
	}
}

// connect serves one connection until it ends.
func (w *Watcher) connect(ctx context.Context, h Handler) error {
	s, err := stub.New(&plugin{w, h}, stub.WithPluginName("dray"), stub.WithPluginIdx("10"), stub.WithSocketPath(w.socket),
		stub.WithOnClose(func() {}), stub.WithLogger(logger{w.log}))
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

func (w *Watcher) setConnected(yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connected = yes
}

// plugin is a connection as the runtime sees it.
type plugin struct {
	w *Watcher
	h Handler
}

// Synchronize implements stub.SynchronizeInterface: these pods run already.
func (p *plugin) Synchronize(_ context.Context, all []*api.PodSandbox, _ []*api.Container) ([]*api.ContainerUpdate, error) {
	now := map[types.UID]pod{}
	for _, s := range all {
		if at := networkOf(s); at != "" { // one that has stopped has none any more
			now[types.UID(s.GetUid())] = pod{s.GetId(), at}
		}
	}
	p.w.mu.Lock()
	p.w.pods, p.w.connected = now, true
	p.w.mu.Unlock()
	p.w.log.Info("connected to the container runtime by NRI", "pods", len(now))
	go p.h.PodsKnown() // the runtime waits
	return nil, nil
}

// startTimeout is less than what the runtime waits for: after that, it would start the
// pod without us.
const startTimeout = api.DefaultPluginRequestTimeout * 3 / 4

// RunPodSandbox implements stub.RunPodInterface: the pod has its network, and no container yet.
func (p *plugin) RunPodSandbox(ctx context.Context, s *api.PodSandbox) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	uid := types.UID(s.GetUid())
	p.w.mu.Lock()
	p.w.pods[uid] = pod{s.GetId(), networkOf(s)}
	p.w.mu.Unlock()
	err := p.h.PodStarts(ctx, uid)
	if err != nil {
		p.w.forget(uid, s.GetId())
		err = fmt.Errorf("dray-node: %w", err)
	}
	return err
}

// StopPodSandbox implements stub.StopPodInterface.
func (p *plugin) StopPodSandbox(_ context.Context, s *api.PodSandbox) error {
	if p.w.forget(types.UID(s.GetUid()), s.GetId()) {
		p.h.PodStopped(types.UID(s.GetUid()))
	}
	return nil
}

// forget forgets a pod if this is its latest sandbox.
func (w *Watcher) forget(uid types.UID, id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pods[uid].id != id {
		return false
	}
	delete(w.pods, uid)
	return true
}

// networkOf is the file of a sandbox's network namespace.
func networkOf(s *api.PodSandbox) string {
	for _, n := range s.GetLinux().GetNamespaces() {
		if n.GetType() == "network" {
			return n.GetPath()
		}
	}
	return ""
}

// logger passes on what the library finds worth a warning.
type logger struct{ log *slog.Logger }

func (logger) Debugf(context.Context, string, ...any) {}
func (logger) Infof(context.Context, string, ...any)  {}
func (l logger) Warnf(_ context.Context, format string, args ...any) {
	l.log.Warn("NRI: " + fmt.Sprintf(format, args...))
}
func (l logger) Errorf(_ context.Context, format string, args ...any) {
	l.log.Error("NRI: " + fmt.Sprintf(format, args...))
}
