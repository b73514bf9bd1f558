// SPDX-License-Identifier: Apache-2.0

// Package layout says where a node keeps its state.
package layout

import "path/filepath"

// State is the default directory of a node's state.
const State = "/run/dray/k8s"

// Programs is the default directory of what nodes give to the containers of DPDK
// applications. It is not below /run, from which some systems execute nothing.
const Programs = "/var/lib/dray"

// Broker is the directory of the node's broker.
func Broker(state string) string { return filepath.Join(state, "broker") }

// Meet is the directory in which the node's broker is asked for meetings of pods.
func Meet(state string) string { return filepath.Join(state, "meet") }

// Net is the directory of the node's network, dray-net.
func Net(state string) string { return filepath.Join(state, "net") }

// Switch is the directory of the node's switch, dray-switch: the only one of the node that its pod has.
func Switch(state string) string { return filepath.Join(state, "switch") }

// Claims is the directory of prepared claims.
func Claims(state string) string { return filepath.Join(state, "claims") }

// CNI is the directory that dray-node shares with dray-cni, a program of the node.
func CNI(state string) string { return filepath.Join(state, "cni") }
