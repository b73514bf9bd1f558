// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/internal/spec/manifest"
)

// Chain is a chain of functions whose pods Kubernetes places.
type Chain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the fields of a chain file (docs/chain-reference.md), without those that
	// a pod decides. Its schema is generated from the decoders of chain files.
	Spec   runtime.RawExtension `json:"spec"`
	Status ChainStatus          `json:"status,omitempty"`
}

// ChainList is a list of chains.
type ChainList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Chain `json:"items"`
}

// Types of a chain's conditions.
const (
	ConditionPlanned  = manifest.ConditionPlanned
	ConditionReady    = manifest.ConditionReady
	ConditionMet      = manifest.ConditionMet
	ConditionVerified = manifest.ConditionVerified // by a user; the operator passes it on
)

// Reasons of conditions.
const (
	ReasonPlanned       = "Planned"
	ReasonInvalid       = "Invalid" // the spec breaks a rule that the schema cannot express
	ReasonInfeasible    = manifest.ReasonInfeasible
	ReasonNoNode        = "NoNode"        // no node has published an inventory yet
	ReasonMet           = "Met"           // by the one-sided 95 % bound
	ReasonMissed        = "Missed"        // by the one-sided 95 % bound
	ReasonNotMeasurable = "NotMeasurable" // the message says what a decision would take
	ReasonNotMeasured   = "NotMeasured"   // no traffic yet, or a path
	ReasonWaiting       = "WaitingForPods"
	ReasonReady         = "Ready"
	ReasonChanged       = "Changed" // somebody has changed a port since
	ReasonPlaced        = "Placed"  // of events: the functions have got nodes, or others
)

// ChainStatus is what the operator knows of a chain.
type ChainStatus struct {
	// ObservedGeneration is the generation of the spec that the status is about.
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	Links              []LinkStatus       `json:"links,omitempty"`
	Paths              []PathStatus       `json:"paths,omitempty"`
	// Instances say which claim has which instance of a function. A claim keeps its
	// instance until it is deleted.
	Instances []InstanceStatus `json:"instances,omitempty"`
	// Placement is the nodes of the functions, if the chain asks for a placement.
	Placement []FunctionPlacement `json:"placement,omitempty"`
	// Ready counts the links that have all their ends, as "1/2".
	Ready string `json:"ready,omitempty"`
	// Verdict counts the requirements by verdict, as "3 met, 1 missed".
	Verdict string `json:"verdict,omitempty"`
}

// InstanceStatus is an instance of a function that a claim has.
type InstanceStatus struct {
	Function string    `json:"function"` // as planned, such as "worker-0"
	Claim    string    `json:"claim"`
	UID      types.UID `json:"uid"` // of the claim
}

// FunctionPlacement is where the pods of a function may be.
type FunctionPlacement struct {
	Function string `json:"function"`
	Node     string `json:"node"`
	Reason   string `json:"reason"` // why there, and why not on some other nodes
}

// LinkStatus is one link of a chain.
type LinkStatus struct {
	Name      string      `json:"name"`
	Transport string      `json:"transport,omitempty"`
	Ends      []EndStatus `json:"ends,omitempty"`
	// Local is the transport that nodes put behind the link's ports if both are on one node.
	// They move a link to it while its ports are open.
	Local string `json:"local,omitempty"`
	// Idle says that the link is one of an instance that no pod has, so nothing waits for it.
	Idle bool `json:"idle,omitempty"`
	// Limits are what the chain requires of the link now. Nodes judge by them, also if a pod
	// has its port from before.
	Limits *Limits `json:"limits,omitempty"`
	// Requirements has one condition for each requirement; its type is the name of the
	// field in the chain file.
	Requirements []metav1.Condition `json:"requirements,omitempty"`
}

// PathStatus is one path of a chain.
type PathStatus struct {
	Name string `json:"name"`
	// Links are those that the packets cross, in order.
	Links []string `json:"links,omitempty"`
	// Requirements are as those of a link. Nodes see no paths, so each is unknown.
	Requirements []metav1.Condition `json:"requirements,omitempty"`
}

// Limits are what is required of a link.
type Limits struct {
	// Generation is that of the chain in which they came. What nodes report by them has
	// it as its observedGeneration.
	Generation int64 `json:"generation"`
	// Text is plan.Limits as JSON.
	Text string `json:"text"`
}

// EndStatus is where one end of a link is.
type EndStatus struct {
	Function string `json:"function"`
	Port     string `json:"port"`
	Pod      string `json:"pod,omitempty"`
	Node     string `json:"node,omitempty"`
	// Transport is what the node has put behind the port; empty: it has not said.
	Transport string `json:"transport,omitempty"`
	// Tunnel is where the node receives the link; only if the link's ends are on
	// different nodes.
	Tunnel *Tunnel `json:"tunnel,omitempty"`
}

// PortData is what a node says of a port in the data of the device in its claim's status.
type PortData struct {
	*Tunnel
	Transport string `json:"transport,omitempty"` // behind the port
	// Peer is where the node sends the link's packets, once the port can receive as well.
	Peer *Tunnel `json:"peer,omitempty"`
}

// Tunnel is where a node receives the packets of a link from another node (RFC 7348).
type Tunnel struct {
	Address string `json:"address"`
	VNI     int    `json:"vni"`
}
