// SPDX-License-Identifier: Apache-2.0

// Package nodeagent is Drayage on one node of a cluster: a DRA driver that
// gives pods the ports of their claims. It makes directories, CDI devices and
// links at the node's broker, and reports each link's verdicts in the claims.
// Everything it makes belongs to a prepared claim, which it keeps on disk
// first. No packet and no socket depends on it, so it can be replaced at any time.
package nodeagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/claims"
	"github.com/drayage/dray/kube/internal/layout"
	"github.com/drayage/dray/kube/internal/nodemetrics"
	"github.com/drayage/dray/kube/internal/nodenet"
	"github.com/drayage/dray/kube/internal/nodeswitch"
)

// Options of an agent.
type Options struct {
	Node      string // name of this node
	Namespace string // where the node publishes its inventory
	PodName   string // of this daemon's own pod; if empty, there are no events about it
	PodUID    types.UID
	StateDir  string // of claims and of the broker, on the node's own file system
	CDIDir    string // of CDI specifications
	PluginDir string // of the driver's socket
	Registry  string // where the kubelet looks for plugins
	Programs  string // for the containers of DPDK applications, on the node's own file system
	Image     string // where this program's image has them
	Seccomp   string // where the kubelet looks for seccomp profiles
	NRI       string // socket at which the container runtime waits for plugins
	CNI       string // where the container runtime looks for CNI plugins; "": NRI reports pods
	// CNIProgram is the plugin in this program's image.
	CNIProgram string
	// Calibration is the file that `dray calibrate` writes on this node.
	Calibration string
	Client      kubernetes.Interface
	Dynamic     dynamic.Interface // for chains
	Log         *slog.Logger
}

// Agent is the daemon of one node.
type Agent struct {
	o     Options
	store *claims.Store
	specs specs
	links links
	warn  *warner
	now   func() time.Time
	live  watched
	pods  sandboxes
	// published is what the operator and the scheduler know; nil: nothing yet.
	published atomic.Pointer[published]
	// registered is whether the kubelet knows the driver; Run sets it.
	registered atomic.Pointer[func() bool]
	// Metrics are about the links of this node and the daemon's own work.
	Metrics *nodemetrics.Metrics
	fatal   chan error
	// changed asks for reports: what is to be told may have changed.
	changed chan struct{}
	// told remembers what was last written to each claim.
	told struct {
		sync.Mutex
		claims  map[types.UID]report
		refused time.Time // when the role last lacked missingVerb
	}
}

// New opens the agent's state.
func New(o Options) (*Agent, error) {
	store, err := claims.Open(layout.Claims(o.StateDir))
	if err != nil {
		return nil, err
	}
	pods := sandboxesOf(&o, store)
	a := &Agent{
		o: o, pods: pods, store: store, specs: specs{o.CDIDir, dpdkFiles{o.Image, o.Programs}}, now: time.Now, fatal: make(chan error, 1), changed: make(chan struct{}, 1),
		links: links{
			dir: layout.Broker(o.StateDir), meet: layout.Meet(o.StateDir), net: nodenet.Client{Dir: layout.Net(o.StateDir)}, sw: nodeswitch.Client{Dir: layout.Switch(o.StateDir)},
			ports: store.Ports, peers: &peers{node: o.Node}, netns: pods.Netns, log: o.Log,
		},
	}
	a.warn = newWarner(&a.o)
	a.links.warn = a.warn
	a.told.claims = map[types.UID]report{}
	a.live = watch(a)
	a.Metrics = nodemetrics.New(nodemetrics.Sources{Links: a.Links, Registered: a.isRegistered, Capacity: maxPorts})
	return a, nil
}

// Intervals of the work that no call of the kubelet starts.
const (
	applyEvery   = 10 * time.Second // links again as claims want them, for example at a new broker
	lookEvery    = 2 * time.Second  // what dray-net offers, and the calibration; pods made before the operator knows the former stay on one node
	collectEvery = time.Minute      // claims whose pod has gone
	publishEvery = time.Minute      // the node's device, if it is missing
)

// Run registers the driver with the kubelet and serves it until ctx ends.
func (a *Agent) Run(ctx context.Context) error {
	if err := os.MkdirAll(a.o.PluginDir, 0o750); err != nil {
		return fmt.Errorf("directory of the driver's socket: %w", err)
	}
	// Only pods that name the profile need it, and the kubelet tells them.
	a.logged("seccomp profile for huge pages", writeProfile(a.o.Seccomp))
	if err := installCNI(&a.o); err != nil {
		return err
	}
	if err := a.warn.start(ctx); err != nil {
		return err
	}
	if _, err := a.publishInventory(ctx); err != nil {
		return err
	}
	if err := a.Collect(ctx); err != nil {
		a.o.Log.Error("collect", "error", err) // the next round tries again
	}
	go a.pods.Run(ctx, starting{a}) // before the kubelet prepares a claim
	helper, err := kubeletplugin.Start(ctx, a, a.pluginOptions()...)
	if err != nil {
		return err
	}
	defer helper.Stop()
	registered := func() bool {
		status := helper.RegistrationStatus()
		return status != nil && status.PluginRegistered
	}
	a.registered.Store(&registered)
	publish := func(ctx context.Context) error {
		p := a.published.Load()
		return helper.PublishResources(ctx, resources(a.o.Node, p.cpus, p.inventory))
	}
	if err := publish(ctx); err != nil {
		return err
	}
	// A kubelet that starts deletes the node's slices. The helper does not always notice.
	go every(ctx, publishEvery, func(ctx context.Context) { a.logged("resources", publish(ctx)) })
	go a.follow(ctx)
	go a.wakeWaitingPods(ctx)
	go every(ctx, applyEvery, a.reconcile)
	go every(ctx, lookEvery, func(ctx context.Context) {
		changed, err := a.publishInventory(ctx)
		a.logged("inventory", err)
		if changed {
			a.logged("resources", publish(ctx))
		}
	})
	go every(ctx, collectEvery, func(ctx context.Context) { a.logged("collect", a.Collect(ctx)) })
	go every(ctx, sampleEvery, a.judge)
	go a.reportAlways(ctx)
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.fatal:
		return err
	}
}

// isRegistered reports whether the kubelet has registered the driver.
func (a *Agent) isRegistered() bool {
	registered := a.registered.Load()
	return registered != nil && (*registered)()
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

// reconcile gives a broker that has lost its links all of them again, and moves links
// whose other end has moved.
func (a *Agent) reconcile(ctx context.Context) {
	found, err := a.apply(ctx)
	a.logged("links", err)
	for uid, fault := range found {
		a.o.Log.Error("links", "claim", uid, "error", fault)
	}
}

// apply makes the broker serve what the claims of this node want, and reports where this
// node receives links from others.
func (a *Agent) apply(ctx context.Context) (found faults, err error) {
	if err := a.store.Update(ctx, a.links.peers.move); err != nil {
		return nil, err
	}
	err = a.store.Use(ctx, func(all []claims.Claim) error {
		found, err = a.applyTo(ctx, all)
		return err
	})
	return found, err
}

// applyTo is apply for claims of which none can change meanwhile.
func (a *Agent) applyTo(ctx context.Context, all []claims.Claim) (faults, error) {
	out, err := a.links.apply(ctx, all)
	if err != nil {
		return out.faults, err
	}
	a.live.tunnels.Store(&out.tunnels)
	for i := range all {
		a.logged("interfaces", a.admit(&all[i], out.faults[all[i].UID]))
	}
	a.reportSoon()
	return out.faults, nil
}

// follow reconciles after each change of a chain's status until ctx ends. Many changes at
// once are one.
func (a *Agent) follow(ctx context.Context) {
	changed := make(chan struct{}, 1)
	err := a.links.peers.watch(ctx, a.o.Dynamic, func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	a.logged("watch chains", err)
	var before string
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		now, err := a.elsewhere(ctx)
		a.logged("links", err)
		if err == nil && now != before {
			a.reconcile(ctx)
			before = now
		}
	}
}

// elsewhere is a text that changes if what the claims want of dray-net or of the switch changes.
func (a *Agent) elsewhere(ctx context.Context) (string, error) {
	if err := a.store.Update(ctx, a.links.peers.move); err != nil {
		return "", err
	}
	all, err := a.store.List(ctx)
	if err != nil {
		return "", err
	}
	wishes, _ := a.links.wanted(all)
	switched, _ := ofSwitch(wishes)
	text, err := json.Marshal([]any{halvesOf(wishes), switched})
	return string(text), err
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
