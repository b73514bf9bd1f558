// SPDX-License-Identifier: Apache-2.0

// Package all lists the runtimes that are built in.
package all

import (
	"github.com/drayage/dray/internal/runtime"
	"github.com/drayage/dray/internal/runtime/process"
	"github.com/drayage/dray/internal/runtime/runc"
)

// All returns every runtime, the default one first.
func All() []runtime.Runtime {
	return []runtime.Runtime{runc.New(), process.New()}
}
