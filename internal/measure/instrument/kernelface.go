// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Testpmd is DPDK's own application, which passes packets from one port to another.
const Testpmd = "dpdk-testpmd"

var testpmd = tool{name: Testpmd, pkg: "dpdk", ask: []string{"-v", "-h"}, version: regexp.MustCompile(`RTE Version: 'DPDK (\S+)'`)}

const (
	// tapName is the interface of a kernel face.
	tapName = "kernel0"
	// facePatience is how long testpmd may take to forward.
	facePatience = machinePatience
	// testpmdReady is printed by testpmd once it forwards.
	testpmdReady = "Logical Core 1 "
)

// TestpmdOptions make testpmd pass packets between two ports, and neither read its
// input nor print statistics.
var TestpmdOptions = []string{"--forward-mode=io", "--nb-cores=1", "--total-num-mbufs=8192", "--disable-link-check", "--stats-period=65535"}

// LineBuffered are the words before a command that make its output readable while it
// runs.
var LineBuffered = []string{"/usr/bin/stdbuf", "--output=L"}

// Forwards reports whether testpmd's output says that it forwards.
func Forwards(output string) bool { return strings.Contains(output, testpmdReady) }

// TapFace starts testpmd between a dpdk port and a tap, which has the port's MAC
// address and ip. It returns the tap's endpoint. net_tap sets the tap's MTU and MAC
// address, so testpmd runs as the host's root. The tap ends with it.
func TapFace(ctx context.Context, at Endpoint, ip netip.Prefix) (face Endpoint, stop func(), err error) {
	argv, version, err := testpmd.findAt(ctx, at)
	if err != nil {
		return face, nil, err
	}
	device := fmt.Sprintf("net_tap0,iface=%s,mac=%s", tapName, at.MAC)
	p, err := launch(at, slices.Concat(LineBuffered, argv, at.EAL, []string{"--vdev", device, "--"}, TestpmdOptions))
	if err != nil {
		return face, nil, err
	}
	defer func() {
		if err != nil {
			p.kill()
		}
	}()
	if err := await(ctx, p, func(p *program) bool { return Forwards(string(p.out.bytes())) }, facePatience); err != nil {
		return face, nil, fmt.Errorf("DPDK %s: %w", version, err)
	}
	if err := errors.Join(at.Place.Netns.AddAddr(tapName, ip), at.Place.Netns.SetUp(tapName)); err != nil {
		return face, nil, err
	}
	return Endpoint{Name: at.Name, Place: at.Place, IP: ip.Addr(), MAC: at.MAC, MTU: at.MTU, Port: tapName}, p.kill, nil
}
