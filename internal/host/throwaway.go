// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// InThrowawayNetns calls f with a new network namespace for probes. It is gone when
// f returns.
func InThrowawayNetns(f func(Netns) error) error {
	return onOwnThread(func() error {
		if err := enterNewNetns(); err != nil {
			return err
		}
		// Named by thread, so that other threads can open it too.
		ns := Netns{Path: fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())}
		if err := ns.SetUp("lo"); err != nil {
			return err
		}
		return f(ns)
	})
}
