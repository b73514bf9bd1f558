// SPDX-License-Identifier: Apache-2.0

// Package layout says where a node keeps its state.
package layout

import "path/filepath"

// State is the default directory of a node's state.
const State = "/run/dray/k8s"

// Broker is the directory of the node's broker.
func Broker(state string) string { return filepath.Join(state, "broker") }

// Claims is the directory of prepared claims.
func Claims(state string) string { return filepath.Join(state, "claims") }
