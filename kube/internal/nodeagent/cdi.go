// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	cdi "tags.cncf.io/container-device-interface/specs-go"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/kube/internal/claims"
)

// cdiKind is the vendor and class of our CDI devices; each claim has one, named
// by its UID.
const cdiKind = "ports.drayage.io/claim"

// portsInside is where libdray looks for the sockets of ports.
const portsInside = "/run/dray/ports"

// specs is the directory of CDI specifications that the container runtime reads.
type specs struct {
	dir  string
	dpdk dpdkFiles
}

func (s specs) file(uid types.UID) string {
	return filepath.Join(s.dir, specPrefix+string(uid)+specSuffix)
}

const (
	specPrefix = "ports.drayage.io-claim-"
	specSuffix = ".json"
)

// deviceID is the name of the CDI device of a claim.
func deviceID(uid types.UID) string { return cdiKind + "=" + string(uid) }

// content tells the container runtime to mount the directory of a claim's ports,
// and what a DPDK application needs.
func (s specs) content(c *claims.Claim, ports string) ([]byte, error) {
	options := []string{"bind", "ro", "nosuid", "nodev", "noexec"}
	if c.UserNamespace {
		// Then the sockets belong to the pod's user inside, too. Without a user
		// namespace, runc refuses the option.
		options = append(options, "idmap")
	}
	edits := cdi.ContainerEdits{Mounts: []*cdi.Mount{{HostPath: ports, ContainerPath: portsInside, Options: options}}}
	if c.DPDK != nil {
		env, err := c.DPDK.Env()
		if err != nil {
			return nil, err
		}
		edits.Env, edits.Mounts = []string{env}, slices.Concat(edits.Mounts, s.dpdk.mounts(), scratch(c.DPDK))
	}
	spec := cdi.Spec{Version: "0.6.0", Kind: cdiKind, Devices: []cdi.Device{{Name: string(c.UID), ContainerEdits: edits}}}
	return json.MarshalIndent(spec, "", " ")
}

// maxSpec bounds a device that is read back, in bytes.
const maxSpec = 1 << 20

// keep makes the device of a claim, unless it is there and whole.
func (s specs) keep(c *claims.Claim, ports string) error {
	data, err := s.content(c, ports)
	if err != nil {
		return err
	}
	if is, err := host.ReadRegular(s.file(c.UID), maxSpec); err == nil && bytes.Equal(is, data) {
		return nil
	}
	return s.replace(c.UID, data)
}

// write makes the device of a claim.
func (s specs) write(c *claims.Claim, ports string) error {
	data, err := s.content(c, ports)
	if err != nil {
		return err
	}
	return s.replace(c.UID, data)
}

func (s specs) replace(uid types.UID, data []byte) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("CDI: %w", err)
	}
	// The runtime ignores files without the suffix, so it never reads half a file.
	if err := host.ReplaceFile(s.file(uid), data, 0o644); err != nil {
		return fmt.Errorf("CDI: %w", err)
	}
	return nil
}

// remove removes a claim's device; it need not exist.
func (s specs) remove(uid types.UID) error {
	return os.RemoveAll(s.file(uid))
}

// unfinishedFor is the age of a file that nobody will finish any more.
const unfinishedFor = 10 * time.Minute

// list returns the claims that have a device, and removes files that stay unfinished.
func (s specs) list() ([]types.UID, error) {
	files, err := filepath.Glob(filepath.Join(s.dir, specPrefix+"*"))
	var uids []types.UID
	for _, file := range files {
		name := strings.TrimPrefix(filepath.Base(file), specPrefix)
		if uid, whole := strings.CutSuffix(name, specSuffix); whole {
			uids = append(uids, types.UID(uid))
			continue
		}
		info, err := os.Lstat(file)
		if err != nil || time.Since(info.ModTime()) < unfinishedFor {
			continue // a claim's device is being written, or has just been
		}
		if err := os.RemoveAll(file); err != nil {
			return nil, err
		}
	}
	return uids, err
}
