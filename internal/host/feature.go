// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"sync"
)

// answers are what this process has found out about the kernel.
var answers sync.Map // feature → answer

type answer struct{ err error } // nil: supported

// once asks the kernel the first time a feature is asked for in this process.
// Only an answer is kept, a yes or an *Unsupported: a probe that failed is
// repeated.
func once(feature string, probe func() error) error {
	if known, ok := answers.Load(feature); ok {
		return known.(answer).err
	}
	err := probe()
	if err == nil || errors.Is(err, ErrUnsupported) {
		answers.Store(feature, answer{err})
	}
	return err
}

// probeIn is once, inside a namespace of the probe's own.
func probeIn(feature string, probe func(Netns) error) error {
	return once(feature, func() error { return InThrowawayNetns(probe) })
}
