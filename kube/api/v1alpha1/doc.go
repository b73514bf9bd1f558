// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds Drayage's objects in the Kubernetes API: the custom
// resource Chain, and the parameters that a ResourceClaim carries to a node.
package v1alpha1

import (
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drayage/dray/internal/spec/manifest"
)

// GroupVersion is the API group and version of this package.
var GroupVersion = schema.GroupVersion{Group: "drayage.io", Version: "v1alpha1"}

// Names that the operator, the nodes and users' manifests share.
const (
	// Driver is the name of the DRA driver and of its DeviceClass.
	Driver = "ports.drayage.io"
	// Device is the only device of each node's ResourceSlice. Any number of claims can
	// share it, as far as its capacity for ports goes.
	Device = "native"
	// CapacityPorts counts the ports that a node serves.
	CapacityPorts = "ports"
	// AttributeNode is the device attribute with the node's name.
	AttributeNode = "node"

	// LabelChain and LabelFunction are on each ResourceClaimTemplate, and so on each
	// claim that a pod gets from it.
	LabelChain    = "drayage.io/chain"
	LabelFunction = "drayage.io/function"
	// LabelInventory marks the ConfigMaps in which nodes publish their inventories, as
	// JSON under KeyInventory.
	LabelInventory = manifest.LabelInventory
	KeyInventory   = manifest.KeyInventory
	// KeyNetwork holds what the node's network offers, in the same ConfigMap; it is missing
	// if dray-net does not run there.
	KeyNetwork = manifest.KeyNetwork
	// KeySwitch holds what the node's switch offers, in the same ConfigMap; it is missing
	// without dray-switch.
	KeySwitch = manifest.KeySwitch
)

// CapacityBitrate counts the payload that ports of a transport carry on a node, in bit/s.
func CapacityBitrate(transport string) resourcev1.QualifiedName {
	return qualified(transport, "Bitrate")
}

// CapacityPacketRate counts their packets per second.
func CapacityPacketRate(transport string) resourcev1.QualifiedName {
	return qualified(transport, "PacketRate")
}

// AttributeLatency is the calibrated one-way latency of a transport at p99, in nanoseconds.
func AttributeLatency(transport string) resourcev1.QualifiedName {
	return qualified(transport, "LatencyNs")
}

// qualified is a name without the hyphens of transports, which Kubernetes does not allow.
func qualified(transport, what string) resourcev1.QualifiedName {
	return resourcev1.QualifiedName(strings.ReplaceAll(transport, "-", "") + what)
}

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Chain{}, &ChainList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
