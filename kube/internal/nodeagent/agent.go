// SPDX-License-Identifier: Apache-2.0

// Package nodeagent is Drayage on one node of a cluster: a DRA driver that
// gives pods the ports of their claims. It makes directories, CDI devices and
// links at the node's broker, and reports each link's verdicts in the claims.
// Everything it makes belongs to a prepared claim, which it keeps on disk
// first. No packet and no socket depends on it, so it can be replaced at any time.
package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/claims"
	"github.com/drayage/dray/kube/internal/layout"
)

// Options of an agent.
type Options struct {
	Node      string // name of this node
	Namespace string // where the node publishes its inventory
	PodUID    types.UID
	StateDir  string // of claims and of the broker, on the node's own file system
	CDIDir    string // of CDI specifications
	PluginDir string // of the driver's socket
	Registry  string // where the kubelet looks for plugins
	Client    kubernetes.Interface
	Log       *slog.Logger
}

// Agent is the daemon of one node.
type Agent struct {
	o     Options
	store *claims.Store
	specs specs
	links links
	now   func() time.Time
	live  watched
	fatal chan error
	// told remembers what was last written to each claim.
	told struct {
		sync.Mutex
		claims map[types.UID]report
	}
}

// New opens the agent's state.
func New(o Options) (*Agent, error) {
	store, err := claims.Open(layout.Claims(o.StateDir))
	if err != nil {
		return nil, err
	}
	a := &Agent{
		o: o, store: store, specs: specs{o.CDIDir}, now: time.Now, fatal: make(chan error, 1),
		links: links{dir: layout.Broker(o.StateDir), ports: store.Ports, log: o.Log},
	}
	a.told.claims = map[types.UID]report{}
	a.live = watch(a)
	return a, nil
}

// Intervals of the work that no call of the kubelet starts.
const (
	applyEvery   = 10 * time.Second // links again as claims want them, for example at a new broker
	collectEvery = time.Minute      // claims whose pod has gone
)

// Run registers the driver with the kubelet and serves it until ctx ends.
func (a *Agent) Run(ctx context.Context) error {
	if err := os.MkdirAll(a.o.PluginDir, 0o750); err != nil {
		return fmt.Errorf("directory of the driver's socket: %w", err)
	}
	if err := a.publishInventory(ctx); err != nil {
		return err
	}
	if err := a.Collect(ctx); err != nil {
		a.o.Log.Error("collect", "error", err) // the next round tries again
	}
	helper, err := kubeletplugin.Start(ctx, a, a.pluginOptions()...)
	if err != nil {
		return err
	}
	defer helper.Stop()
	if err := helper.PublishResources(ctx, resources(a.o.Node)); err != nil {
		return err
	}
	go a.wakeWaitingPods(ctx, helper.RegistrationStatus)
	go every(ctx, applyEvery, a.reconcile)
	go every(ctx, collectEvery, func(ctx context.Context) { a.logged("collect", a.Collect(ctx)) })
	go every(ctx, sampleEvery, a.reportVerdicts)
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.fatal:
		return err
	}
}

func (a *Agent) pluginOptions() []kubeletplugin.Option {
	options := []kubeletplugin.Option{
		kubeletplugin.DriverName(v1alpha1.Driver),
		kubeletplugin.KubeClient(a.o.Client),
		kubeletplugin.NodeName(a.o.Node),
		kubeletplugin.PluginDataDirectoryPath(a.o.PluginDir),
		kubeletplugin.RegistrarDirectoryPath(a.o.Registry),
		// A claim may wait for another pod to end; other claims must not.
		kubeletplugin.Serialize(false),
	}
	if a.o.PodUID != "" {
		options = append(options, kubeletplugin.RollingUpdate(a.o.PodUID))
	}
	return options
}

// HandleError implements kubeletplugin.DRAPlugin.
func (a *Agent) HandleError(_ context.Context, err error, text string) {
	a.o.Log.Error(text, "error", err)
	if !errors.Is(err, kubeletplugin.ErrRecoverable) {
		select {
		case a.fatal <- err:
		default:
		}
	}
}

// reconcile gives a broker that has lost its links all of them again.
func (a *Agent) reconcile(ctx context.Context) {
	found, err := a.apply(ctx)
	a.logged("links", err)
	for uid, fault := range found {
		a.o.Log.Error("links", "claim", uid, "error", fault)
	}
}

// apply makes the broker serve what the claims of this node want.
func (a *Agent) apply(ctx context.Context) (found faults, err error) {
	err = a.store.Use(ctx, func(all []claims.Claim) (err error) {
		found, err = a.links.apply(ctx, all)
		return err
	})
	return found, err
}

func (a *Agent) logged(what string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		a.o.Log.Error(what, "error", err)
	}
}

// every calls f at each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, f func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f(ctx)
		}
	}
}
