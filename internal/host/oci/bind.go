// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"fmt"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/drayage/dray/internal/host"
)

// Bind is a mount of part of the host, with what is mounted below it: in a user namespace
// the mounts of the host are locked together, and a bind that left some out would show what
// they hide. The kernel refuses that (mount_namespaces(7)). A user namespace may add
// restrictions to a mount but must keep existing ones, such as noexec on Debian's /run.
func Bind(source, target string, write bool) (specs.Mount, error) {
	options := []string{"rbind", "rnosuid", "rnodev"}
	if !write {
		options = append(options, "rro")
	}
	noExec, err := host.NoExec(source)
	if err != nil {
		return specs.Mount{}, fmt.Errorf("bind %s: %w", target, err)
	}
	if noExec {
		options = append(options, "rnoexec")
	}
	return specs.Mount{Destination: target, Type: "bind", Source: source, Options: options}, nil
}
