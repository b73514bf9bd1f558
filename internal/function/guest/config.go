// SPDX-License-Identifier: Apache-2.0

// Package guest boots virtual machines with a Debian kernel and the host's own
// programs, and runs commands in them.
//
// A guest has no disk and no image. An initramfs holds the agent (dray-guest) and
// the modules that it needs. The host's root is mounted read-only over 9p, below
// an overlay that is lost with the guest. The guest sees all of it, or what an
// ordinary user may read, less hidden paths. QEMU uses KVM if a guest has booted
// with it on this host, and otherwise emulation (TCG).
package guest

import "github.com/drayage/dray/internal/function/guest/inside"

// Names that the agent finds in the guest.
const (
	tagRoot    = "root"
	tagModules = "modules"
)

// Channels is how many commands can run in a guest at once.
const Channels = 16

// bootModules are what the guest needs to boot; their dependencies precede them.
// The guest's own modprobe loads the rest on demand.
var bootModules = []string{"virtio_pci", "virtio_console", "virtio_net", "9p", "9pnet_virtio", "overlay", "virtio_rng"}

// Share is a host directory that the guest sees at the same path.
type Share struct {
	Path     string
	ReadOnly bool
}

// insideConfig is the agent's configuration in the initramfs.
func (c Config) insideConfig(k Kernel, modules []string) inside.Config {
	in := inside.Config{
		Modules: modules, Root: tagRoot, Hostname: c.Name, Channels: Channels,
		Mounts: []inside.Mount{{Tag: tagModules, Path: "/lib/modules/" + k.Version, ReadOnly: true}},
	}
	for i, s := range c.Shares {
		in.Mounts = append(in.Mounts, inside.Mount{Tag: shareTag(i), Path: s.Path, ReadOnly: s.ReadOnly})
	}
	return in
}
