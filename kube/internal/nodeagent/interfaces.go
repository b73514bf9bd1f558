// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/kube/internal/claims"
	"github.com/drayage/dray/kube/internal/nodenet"
)

// A pod gets its interfaces when the container runtime has made its network namespace,
// and before any container starts. The containers' device is written only then. So if
// this program is away at that moment, the containers wait for it: the runtime knows no
// such device.

// starting is the agent as it acts on pods that start.
type starting struct{ *Agent }

// PodStarts implements sandbox.Handler. It must be quick, so it waits for no lock.
func (a starting) PodStarts(ctx context.Context, pod types.UID) error {
	all, err := a.store.Peek()
	if err != nil {
		return err
	}
	own := ofPod(all, pod)
	if len(own) == 0 {
		return nil
	}
	found, err := a.links.plug(ctx, all, pod)
	if err != nil {
		return err
	}
	for i := range own {
		if err := errors.Join(found[own[i].UID], a.admit(&own[i], found[own[i].UID])); err != nil {
			a.o.Log.Error("interfaces", "pod", own[i].Namespace+"/"+own[i].Pod, "error", err)
			return err
		}
	}
	return nil
}

// PodStopped implements sandbox.Handler. Containers of the pod's next sandbox wait until
// that has the interfaces.
func (a starting) PodStopped(pod types.UID) {
	all, err := a.store.Peek()
	for _, c := range ofPod(all, pod) {
		err = errors.Join(err, a.specs.remove(c.UID))
	}
	a.logged("device of a pod that stopped", err)
}

// PodsKnown implements sandbox.Handler: pods that run without their interfaces get them.
func (a starting) PodsKnown() {
	ctx, cancel := context.WithTimeout(context.Background(), applyEvery)
	defer cancel()
	a.reconcile(ctx)
}

// ofPod are the claims of a pod with interfaces.
func ofPod(all []claims.Claim, pod types.UID) (own []claims.Claim) {
	for _, c := range all {
		if c.PodUID == pod && c.Interfaces() {
			own = append(own, c)
		}
	}
	return own
}

// plug has dray-net make the interfaces of a pod. It changes no other link.
func (l *links) plug(ctx context.Context, all []claims.Claim, pod types.UID) (faults, error) {
	if l.netns(pod) == "" {
		return nil, errors.New("the container runtime names no network namespace of the pod")
	}
	wishes, found := l.wanted(all)
	own := ofPod(all, pod)
	var halves []nodenet.Half
	for i := range own {
		for j := range own[i].Ports {
			if w := wishes[linkOf(&own[i], &own[i].Ports[j])]; w.bridged() {
				halves = append(halves, *w.half)
			}
		}
	}
	made, err := l.net.Apply(ctx, halves, false)
	if err != nil {
		return nil, fmt.Errorf("%w; look at the pod dray-net of this node", err)
	}
	for _, m := range made {
		if m.Error != "" {
			found.blame(all, m.Name, bothEnds, fmt.Errorf("link %s: %s", m.Name, m.Error))
		}
		for end, text := range m.Faults {
			found.blame(all, m.Name, end, errors.New(text))
		}
	}
	return found, nil
}

// admit lets the containers of a claim with interfaces start if it has them.
func (a *Agent) admit(c *claims.Claim, fault error) error {
	if !c.Interfaces() || fault != nil || a.pods.Netns(c.PodUID) == "" {
		return nil
	}
	if _, err := os.Stat(a.specs.file(c.UID)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return a.specs.write(c, a.store.Ports(c.UID))
}

// Patience with a container runtime that starts, and with this program's own connection.
const (
	runtimePatience = 15 * time.Second
	runtimePause    = 50 * time.Millisecond
)

// errNoNRI says that nobody would give a pod its interfaces.
var errNoNRI = errors.New("the container runtime of this node accepts no NRI plugin, so the pod would have no interface: " +
	"enable NRI (in containerd's configuration, disable = false in plugins.'io.containerd.nri.v1.nri'), and start it again")

// awaitRuntime waits until pods get their interfaces before their containers start.
func (a *Agent) awaitRuntime(ctx context.Context, c *claims.Claim) error {
	if !c.Interfaces() {
		return nil
	}
	deadline := time.Now().Add(runtimePatience)
	for !a.pods.Connected() {
		if err := host.Sleep(ctx, runtimePause); err != nil || time.Now().After(deadline) {
			return fmt.Errorf("%w (socket %s)", errNoNRI, a.o.NRI)
		}
	}
	return nil
}
