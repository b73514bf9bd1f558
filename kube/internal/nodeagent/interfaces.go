// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/kube/internal/claims"
	"github.com/drayage/dray/kube/internal/cni"
	"github.com/drayage/dray/kube/internal/layout"
	"github.com/drayage/dray/kube/internal/nodenet"
	"github.com/drayage/dray/kube/internal/sandbox"
)

// A pod gets its interfaces when the container runtime has made its network namespace,
// and before any container starts. The containers' device is written only then. So if
// this program is away at that moment, the containers wait for it: the runtime knows no
// such device.

// sandboxes says where the network namespaces of pods are, and acts before containers start.
type sandboxes interface {
	// Expect is called before a pod with interfaces has a namespace.
	Expect(ctx context.Context, pod types.UID) error
	Netns(pod types.UID) string
	Run(ctx context.Context, h sandbox.Handler)
}

// sandboxesOf reports pods by dray-cni if it is installed, otherwise by NRI.
func sandboxesOf(o *Options, store *claims.Store) sandboxes {
	if o.CNI == "" {
		return sandbox.New(o.NRI, o.Log)
	}
	of := func(pod types.UID) ([]cni.Interface, error) {
		all, err := store.Peek()
		return interfacesOf(all, pod), err
	}
	return sandbox.NewCNI(layout.CNI(o.StateDir), of, o.Log)
}

// installCNI copies the plugin from this image to where the container runtime looks for it.
func installCNI(o *Options) error {
	if o.CNI == "" {
		return nil
	}
	program, err := os.ReadFile(o.CNIProgram)
	if err == nil {
		err = replace(filepath.Join(o.CNI, filepath.Base(o.CNIProgram)), program, 0o755)
	}
	if err != nil {
		return fmt.Errorf("install the CNI plugin: %w", err)
	}
	return nil
}

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
			if w := wishes[linkOf(&own[i], &own[i].Ports[j])]; w != nil && w.bridged() {
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
	return a.specs.keep(c, a.store.Ports(c.UID))
}

// interfacesOf are the interfaces of a pod, and its devices with sockets, as dray-cni reports them.
func interfacesOf(all []claims.Claim, pod types.UID) []cni.Interface {
	var found []cni.Interface
	for _, c := range all {
		if c.PodUID != pod {
			continue
		}
		for i := range c.Ports {
			e := c.Ports[i].Link.Ends[c.Ports[i].End()]
			made := cni.Interface{Name: e.Port, MAC: e.MAC.HardwareAddr().String(), MTU: c.Ports[i].Link.MTU, Device: socketDevice(&c.Ports[i])}
			if e.Face != chain.FaceNetdev && made.Device == nil {
				continue
			}
			if e.IP.IsValid() {
				made.IP = e.IP.String()
			}
			found = append(found, made)
		}
	}
	return found
}

// socketDevice is the device of a port with a socket in its container; nil for all others.
func socketDevice(p *claims.Port) *cni.Device {
	if p.Link.Ends[p.End()].Face != chain.FaceDPDK {
		return nil
	}
	v := deviceOf(p)
	d := &cni.Device{Path: filepath.Join(v.Dir, v.Socket()), Listens: v.Awaits == ""}
	switch v.Driver {
	case dpdk.NetMemif:
		d.Type = cni.Memif
	case dpdk.NetVirtioUser:
		d.Type = cni.VhostUser
	default:
		return nil
	}
	return d
}
