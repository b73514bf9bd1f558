// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"sync"
)

// answers caches this process's probe results.
var answers sync.Map // feature → answer

type answer struct{ err error } // nil: supported

// once probes a feature on the first call in this process. It caches only definite
// answers, nil or an *Unsupported; a failed probe is repeated.
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

// probeIn is once, inside the probe's own namespace.
func probeIn(feature string, probe func(Netns) error) error {
	return once(feature, func() error { return InThrowawayNetns(probe) })
}
