// SPDX-License-Identifier: Apache-2.0

// Package claims keeps the ResourceClaims that a node has prepared, on disk.
// Two instances of the node's daemon can run at once while one replaces the
// other, so every change is made under a lock and nothing is kept in memory.
package claims

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/eal"
)

// Claim is a prepared claim: the ports of one pod.
type Claim struct {
	UID       types.UID `json:"uid"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Pod       string    `json:"pod"`
	PodUID    types.UID `json:"podUID,omitempty"`
	// User is the uid that may open the ports, as the pod names it.
	User int `json:"user"`
	// UserNamespace says that the pod has one of its own.
	UserNamespace bool      `json:"userNamespace,omitempty"`
	Since         time.Time `json:"since"`
	Ports         []Port    `json:"ports"`
	// DPDK is for the container that has the claim's dpdk ports; nil: there are none.
	DPDK *eal.Setting `json:"dpdk,omitempty"`
}

// Port is the port that one request of a claim stands for.
type Port struct {
	v1alpha1.PortParameters
	Request string `json:"request"`
	// The allocation of the request, as the kubelet and the claim's status name it.
	Pool    string     `json:"pool"`
	Device  string     `json:"device"`
	ShareID *types.UID `json:"shareID,omitempty"`
	// LimitsOf is the generation of the chain in which the link's limits came; 0: they are
	// those of the claim. It is not kept.
	LimitsOf int64 `json:"-"`
}

// Interfaces reports whether a port of the claim is an interface of its pod.
func (c *Claim) Interfaces() bool {
	return slices.ContainsFunc(c.Ports, func(p Port) bool { return p.Link.Ends[p.End()].Face == chain.FaceNetdev })
}

// Key names a port in the cluster.
type Key struct{ Namespace, Chain, Function, Port string }

// Key is the name of the claim's port i in the cluster.
func (c *Claim) Key(i int) Key {
	p := &c.Ports[i]
	return Key{c.Namespace, p.Chain, p.Function, p.Port}
}

// String is "namespace/chain function.port".
func (k Key) String() string {
	return k.Namespace + "/" + k.Chain + " " + k.Function + "." + k.Port
}
