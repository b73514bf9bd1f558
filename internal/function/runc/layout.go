// SPDX-License-Identifier: Apache-2.0

package runc

import (
	"path/filepath"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/oci"
)

// userRangeFile holds the first host id of the function's user namespace.
const userRangeFile = "userid"

// layout names this runtime's files in a function's directory.
type layout struct{ dir string }

func (l layout) user() string      { return filepath.Join(l.dir, "user") } // pinned user namespace
func (l layout) net() host.Netns   { return host.Netns{Path: filepath.Join(l.dir, "net")} }
func (l layout) userRange() string { return filepath.Join(l.dir, userRangeFile) }
func (l layout) root() string      { return filepath.Join(l.dir, "root") }    // mount point of the root file system
func (l layout) cpus() string      { return filepath.Join(l.dir, "cpus") }    // prepared copies, see cpuView
func (l layout) bundles() string   { return filepath.Join(l.dir, "bundles") } // one OCI bundle per container
func (l layout) state() string     { return filepath.Join(l.dir, "runc") }    // runc --root
func (l layout) container(id string) oci.Container {
	return oci.Container{ID: id, Bundle: filepath.Join(l.bundles(), id), State: l.state()}
}
