// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"fmt"
	"hash/fnv"
	"path/filepath"

	"github.com/drayage/dray/internal/host"
)

// firstUser is the first of 2^24 host ids that QEMU runs as; the ids of switches
// and of functions in user namespaces follow.
const firstUser = 0x0e000000

// User is the host user and group that this owner's QEMU runs as.
func User(owner string) int {
	h := fnv.New32a()
	h.Write([]byte(owner))
	return firstUser + int(h.Sum32()&0xffffff)
}

// seen are the paths of files that QEMU opens.
type seen struct {
	image, initramfs, modules, root string
	shares                          []string
	sockets                         []string // one for each NIC, "" for one without
}

// Paths inside a confined QEMU.
const (
	insideImage     = "/guest/kernel"
	insideInitramfs = "/guest/initramfs"
	insideModules   = "/guest/modules"
	insideRoot      = "/guest/root"
)

func insideShare(i int) string { return fmt.Sprintf("/guest/share%d", i) }

func insideNIC(i int) string { return fmt.Sprintf("/guest/nic%d", i) }

// seen lists what QEMU opens by path.
func (c Config) seen(k Kernel) seen {
	s := seen{image: k.Image, initramfs: filepath.Join(c.Dir, fileInitramfs), modules: k.Modules, root: "/"}
	if c.User != 0 {
		s = seen{image: insideImage, initramfs: insideInitramfs, modules: insideModules, root: insideRoot}
	}
	for i, share := range c.Shares {
		path := share.Path
		if c.User != 0 {
			path = insideShare(i)
		}
		s.shares = append(s.shares, path)
	}
	for i, n := range c.NICs {
		path := n.Socket
		if path != "" && c.User != 0 {
			path = filepath.Join(insideNIC(i), filepath.Base(path))
		}
		s.sockets = append(s.sockets, path)
	}
	return s
}

// confinement is what an unprivileged QEMU sees of the host: its own program, and
// what the guest sees.
func (c Config) confinement(k Kernel) (host.Confinement, error) {
	parts, err := host.ProgramMounts()
	if err != nil {
		return host.Confinement{}, err
	}
	s := c.seen(k)
	views := []host.View{
		{Source: "/usr", Target: "/usr", Parts: below(parts, "/usr")},
		{Source: k.Image, Target: s.image},
		{Source: filepath.Join(c.Dir, fileInitramfs), Target: s.initramfs},
		{Source: k.Modules, Target: s.modules},
		{Source: "/", Target: s.root, Parts: parts, Hidden: c.Hidden, Shown: c.Shown},
	}
	for i, share := range c.Shares {
		views = append(views, host.View{Source: share.Path, Target: s.shares[i], Write: !share.ReadOnly})
	}
	for i, n := range c.NICs {
		if n.Socket != "" {
			views = append(views, host.View{Source: filepath.Dir(n.Socket), Target: insideNIC(i), Write: true})
		}
	}
	return host.Confinement{
		User: c.User, Views: views,
		Links:   map[string]string{"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"},
		Devices: []string{"/dev/null", "/dev/urandom", "/dev/kvm"},
	}, nil
}

// below are the paths below a directory.
func below(paths []string, dir string) []string {
	var list []string
	for _, p := range paths {
		if rel, err := filepath.Rel(dir, p); err == nil && rel != "." && filepath.IsLocal(rel) {
			list = append(list, p)
		}
	}
	return list
}
