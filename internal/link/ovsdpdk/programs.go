// SPDX-License-Identifier: Apache-2.0

package ovsdpdk

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/drayage/dray/internal/host"
)

// The two processes of a link.
const (
	dbServer = "ovsdb-server"
	vswitchd = "ovs-vswitchd"
)

// debianPackage contains the switch; its dependencies contain the tools.
const debianPackage = "openvswitch-switch-dpdk"

// debianSwitch is Debian's program linked with DPDK. The plain one is also
// installed, and /usr/sbin/ovs-vswitchd may be either.
const debianSwitch = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"

// Program is an ovs-vswitchd that is linked with DPDK.
type Program struct {
	Path    string // without symbolic links: the switch sees only /usr
	Version string // "3.1.0, DPDK 22.11.11"
}

// FindSwitch finds the switch on this host.
func FindSwitch(ctx context.Context) (Program, error) {
	candidates := []string{debianSwitch}
	if path, err := host.LookProgram(vswitchd); err == nil {
		candidates = append(candidates, path)
	}
	for _, path := range candidates {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		out, err := host.Helper{Program: real, Args: []string{"--version"}}.Output(ctx)
		if err != nil {
			return Program{}, err
		}
		if version, ok := parseVersion(out); ok {
			return Program{Path: real, Version: version}, nil
		}
	}
	return Program{}, &host.Unsupported{What: Name, Why: "no ovs-vswitchd with DPDK is installed", Fix: "apt install " + debianPackage}
}

// parseVersion reads the output of --version: a line with the switch's
// version, and one with DPDK's; false if it is not linked with DPDK.
func parseVersion(out string) (string, bool) {
	first, rest, _ := strings.Cut(out, "\n")
	dpdk, _, _ := strings.Cut(rest, "\n")
	if !strings.HasPrefix(dpdk, "DPDK ") {
		return "", false
	}
	return first[strings.LastIndexByte(first, ' ')+1:] + ", " + dpdk, true
}

func lookup(program string) (string, error) { return host.NeedProgram(Name, program, debianPackage) }

// Schema finds the definition of the switch's database.
func Schema() (string, error) {
	return host.NeedFile(Name, "/usr/share/openvswitch/vswitch.ovsschema", debianPackage)
}
