// SPDX-License-Identifier: Apache-2.0

// Package guest boots virtual machines with a kernel of Debian's and the host's
// own programs in them, and runs commands there.
//
// A guest has no disk and no image: an initramfs with the agent (dray-guest) and
// the modules that it needs, and the host's root, read-only over 9p, below an
// overlay that is lost with the guest: all of it, or what an ordinary user may
// read, less what is hidden. QEMU runs it with KVM if a guest has
// been seen to boot so on this host, and else emulates it (TCG).
package guest

import "github.com/drayage/dray/internal/function/guest/inside"

// Names of what the agent finds in the guest.
const (
	tagRoot    = "root"
	tagModules = "modules"
)

// Channels is how many commands can run in a guest at once.
const Channels = 16

// bootModules are what the guest needs to come up; what they depend on comes
// before them. The rest is loaded by the guest's own modprobe when asked for.
var bootModules = []string{"virtio_pci", "virtio_console", "virtio_net", "9p", "9pnet_virtio", "overlay", "virtio_rng"}

// Share is a directory of the host that the guest sees at the same path.
type Share struct {
	Path     string
	ReadOnly bool
}

// insideConfig is what the agent is told by the initramfs.
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
