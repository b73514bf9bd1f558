// SPDX-License-Identifier: Apache-2.0

package cni

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Device is a DPDK device with a socket. It is no interface of the kernel.
type Device struct {
	Type    string `json:"type"`
	Path    string `json:"path"`              // of the socket, as the container sees it
	Listens bool   `json:"listens,omitempty"` // the application makes the socket
}

// Types of devices, as the specification below names them.
const (
	Memif     = "memif"
	VhostUser = "vhost-user"
)

// deviceInfo is what a CNI plugin tells of a device: Device Information Specification 1.1.0 of the
// Network Plumbing Working Group, sections 3.1.5 and 3.1.6.
type deviceInfo struct {
	Type      string         `json:"type"`
	Version   string         `json:"version"`
	Memif     *memifInfo     `json:"memif,omitempty"`
	VhostUser *vhostUserInfo `json:"vhost-user,omitempty"`
}

type memifInfo struct {
	Role string `json:"role"`
	Path string `json:"path"`
	Mode string `json:"mode"`
}

type vhostUserInfo struct {
	Mode string `json:"mode"`
	Path string `json:"path"`
}

func (d Device) info() deviceInfo {
	i := deviceInfo{Type: d.Type, Version: "1.1.0"}
	if d.Type == Memif {
		i.Memif = &memifInfo{Role: "slave", Path: d.Path, Mode: "ethernet"}
		if d.Listens {
			i.Memif.Role = "master"
		}
		return i
	}
	i.VhostUser = &vhostUserInfo{Mode: "client", Path: d.Path}
	if d.Listens {
		i.VhostUser.Mode = "server"
	}
	return i
}

// DeviceFiles is the directory of such files (section 4.2).
const DeviceFiles = "/var/run/k8s.cni.cncf.io/devinfo/cni"

// deviceFile are the names of its files.
var deviceFile = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]{0,250}$`)

// writeDevice writes what a network needs to know of a device to the file that its caller names. The
// network's configuration comes from users of the cluster, so no other file of the node is written.
func writeDevice(dir, file string, d Device) error {
	name := filepath.Base(file)
	if filepath.Join(dir, name) != file || !deviceFile.MatchString(name) {
		return fmt.Errorf("the device information file %q is not in %s", file, dir)
	}
	text, err := json.Marshal(d.info())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	unfinished := filepath.Join(dir, ".dray-"+name)
	if err := os.WriteFile(unfinished, text, 0o600); err != nil {
		return err
	}
	return os.Rename(unfinished, file)
}
