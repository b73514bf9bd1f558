// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/drayage/dray/kube/internal/claims"
	"github.com/drayage/dray/kube/internal/nodemetrics"
)

// Patience of Prepare with another pod that still has a port, or with an operator that has
// not chosen an instance yet. It is less than the kubelet's own, which would try again only
// after a minute.
const (
	portPatience = 30 * time.Second
	portPause    = 100 * time.Millisecond
)

var errNoInstance = errors.New("no instance is free")

// PrepareResourceClaims implements kubeletplugin.DRAPlugin.
func (a *Agent) PrepareResourceClaims(ctx context.Context, all []*resourcev1.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, c := range all {
		start := a.now()
		kept, err := a.prepare(ctx, c)
		if err != nil {
			a.Metrics.NotPrepared(a.now().Sub(start), reasonOf(err))
			a.o.Log.Error("prepare", "claim", c.Namespace+"/"+c.Name, "error", err)
			results[c.UID] = kubeletplugin.PrepareResult{Err: err}
			continue
		}
		took := a.now().Sub(start)
		a.Metrics.Prepared(took)
		a.o.Log.Info("prepared", "claim", c.Namespace+"/"+c.Name, "pod", kept.Pod, "ports", len(kept.Ports), "took", took.Round(time.Millisecond))
		results[c.UID] = kubeletplugin.PrepareResult{Devices: devices(kept)}
	}
	return results, nil
}

// reasonOf is why a claim could not be prepared.
func reasonOf(err error) nodemetrics.Reason {
	var held *claims.HeldError
	switch {
	case errors.As(err, &held):
		return nodemetrics.PortHeld
	case errors.Is(err, errNoBroker):
		return nodemetrics.NoBroker
	case errors.Is(err, errNoInstance):
		return nodemetrics.NoInstance
	}
	return nodemetrics.Other
}

// prepare makes the ports of a claim. It may be called again for a claim that
// is prepared, and after the node has lost everything in memory.
func (a *Agent) prepare(ctx context.Context, c *resourcev1.ResourceClaim) (*claims.Claim, error) {
	pod, err := a.podOf(ctx, c)
	if err != nil {
		return nil, err
	}
	instance, err := a.awaitInstance(ctx, c)
	if err != nil {
		return nil, err
	}
	kept, err := read(c, pod, instance)
	if err != nil {
		return nil, err
	}
	if err := a.specs.dpdk.serve(&kept); err != nil {
		return nil, err
	}
	if kept.Interfaces() || a.o.CNI != "" && kept.DPDK != nil && kept.DPDK.Attended() {
		if err := a.pods.Expect(ctx, kept.PodUID); err != nil {
			return nil, err
		}
	}
	kept.Since = a.now()
	if err := a.keep(ctx, kept); err != nil {
		return nil, err
	}
	found, err := a.apply(ctx)
	if err := errors.Join(err, found[kept.UID]); err != nil {
		return nil, err
	}
	if kept.Interfaces() {
		return &kept, nil // the containers get the device when the pod has its interfaces
	}
	if err := a.specs.write(&kept, a.store.Ports(kept.UID)); err != nil {
		return nil, err
	}
	return &kept, nil
}

// awaitInstance is the instance that the operator has chosen for a claim; "" if the claim's
// function has no instances.
func (a *Agent) awaitInstance(ctx context.Context, c *resourcev1.ResourceClaim) (string, error) {
	p := firstInstance(c)
	if p == nil {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, portPatience)
	defer cancel()
	for {
		if name := a.links.peers.instance(c.Namespace, p.Chain, c.UID); name != "" {
			return name, nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%w: chain %s has no instance of %s for this pod; end another pod, or raise instances", errNoInstance, p.Chain, p.Of)
		case <-time.After(portPause):
		}
	}
}

// keep adds a claim to the store once no other pod has its ports.
func (a *Agent) keep(ctx context.Context, c claims.Claim) error {
	deadline := time.Now().Add(portPatience)
	for {
		err := a.store.Add(ctx, c)
		var held *claims.HeldError
		if !errors.As(err, &held) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(portPause):
		}
	}
}

// podOf is the pod that the claim is reserved for.
func (a *Agent) podOf(ctx context.Context, c *resourcev1.ResourceClaim) (*corev1.Pod, error) {
	for _, r := range c.Status.ReservedFor {
		if r.APIGroup != "" || r.Resource != "pods" {
			continue
		}
		pod, err := a.o.Client.CoreV1().Pods(c.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("the claim's pod: %w", err)
		}
		if pod.UID == r.UID && pod.Spec.NodeName == a.o.Node {
			return pod, nil
		}
	}
	return nil, errors.New("no pod of this node has the claim")
}

// devices are what the kubelet passes to the container runtime: for each
// request the device of the claim, which the runtime adds once.
func devices(c *claims.Claim) []kubeletplugin.Device {
	var all []kubeletplugin.Device
	for _, p := range c.Ports {
		all = append(all, kubeletplugin.Device{
			Requests: []string{p.Request}, PoolName: p.Pool, DeviceName: p.Device, ShareID: p.ShareID, CDIDeviceIDs: []string{deviceID(c.UID)},
		})
	}
	return all
}

// UnprepareResourceClaims implements kubeletplugin.DRAPlugin.
func (a *Agent) UnprepareResourceClaims(ctx context.Context, all []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, c := range all {
		results[c.UID] = a.unprepare(ctx, c.UID)
		if results[c.UID] != nil {
			a.Metrics.NotUnprepared()
		}
		a.o.Log.Info("unprepared", "claim", c.String(), "error", results[c.UID])
	}
	return results, nil
}

// unprepare removes everything that a claim has on this node.
func (a *Agent) unprepare(ctx context.Context, uid types.UID) error {
	a.forget(uid)
	if err := a.specs.remove(uid); err != nil {
		return err
	}
	return a.store.Remove(ctx, uid, func(stay []claims.Claim) error {
		_, err := a.applyTo(ctx, stay) // faults of other claims are not in the way
		return err
	})
}
