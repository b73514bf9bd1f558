// SPDX-License-Identifier: Apache-2.0

package manifest

// Names of what Drayage keeps in a cluster, for its programs there and for those that
// look at it from outside.
const (
	// Resource is the resource of chains as kubectl names it.
	Resource = "chains.drayage.io"
	// Namespace is where Drayage is installed.
	Namespace = "dray-system"
	// LabelName has the name of a program on its pods. NodeProgram is the one on each node,
	// and serves HTTP at NodePort.
	LabelName   = "app.kubernetes.io/name"
	NodeProgram = "dray-node"
	NodePort    = 9464
	// NodeContainer is its container, whose program is NodeCommand.
	NodeContainer = "driver"
	NodeCommand   = "/dray-node"
	// CaptureVerb is the argument with which NodeCommand captures a port.
	CaptureVerb = "capture"
	// LabelInventory marks the ConfigMaps in which nodes publish their inventories, as
	// JSON under KeyInventory.
	LabelInventory = "drayage.io/inventory"
	KeyInventory   = "inventory.json"
	// KeyNetwork holds what the node's network offers to others; none, if it offers nothing.
	KeyNetwork = "network.json"
	// KeySwitch holds what the node's switch offers to others; none, if it has no switch.
	KeySwitch = "switch.json"
)

// Types of a chain's conditions.
const (
	// ConditionPlanned is False with the reason ReasonInfeasible if no node can do what
	// the chain requires.
	ConditionPlanned = "Planned"
	// ConditionReady is True when every link has all its ends on a node.
	ConditionReady = "Ready"
	// ConditionMet is True if every requirement is met, False if one is missed, and
	// Unknown otherwise.
	ConditionMet = "Met"
	// ConditionVerified is what an active verification found last: True if every
	// requirement is met, False if one is missed, and Unknown otherwise.
	ConditionVerified = "Verified"
)

// ReasonInfeasible is the reason of a plan that no node can carry out; the message names
// the constraint.
const ReasonInfeasible = "Infeasible"
