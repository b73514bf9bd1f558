// SPDX-License-Identifier: Apache-2.0

// Package memif joins two DPDK applications by shared memory, with DPDK's own
// driver net_memif. One end listens on a socket; the other connects and sends
// its memory. No host process is on the data path.
package memif

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Name is the transport's name in a chain file.
const Name = "memif"

// maxMTU is what our driver file lets net_memif report. Alone it reports stockMTU, frames of 1518 bytes, although it
// passes longer ones as well.
const (
	maxMTU   = 9216
	stockMTU = 1500
)

// New returns the driver.
func New() transport.Driver { return transport.Define(Name, caps, probe, build) }

var caps = inventory.Caps{
	Faces:      []string{string(chain.FaceDPDK)},
	Isolation:  string(chain.IsolationLink),
	MinEnds:    2,
	MaxEnds:    2,
	MaxMTU:     maxMTU,
	Rank:       6,
	Trust:      true,
	Privileges: "none",
	Processes:  0,
	Copies:     1,
	KernelPath: "none: rings and packet memory of one end; the other end maps them, and copies from and to them",
	Note: "the ends trust each other: with zero-copy the server can write to all DPDK memory of the client, and " +
		"net_memif is known to crash when its peer goes away, so give both functions a restart policy",
}

func probe(context.Context) inventory.Item { return dpdk.Probe(Name, dpdk.NetMemif) }

func build(s transport.Spec) (*transport.Build, error) {
	server, client, err := roles(s.Ends[0], s.Ends[1])
	if err != nil {
		return nil, s.Refuse(Name, err)
	}
	build := transport.NewBuild()
	build.Report.Engine = "net_memif, in the functions' own DPDK"
	others := server.User != client.User
	build.Report.Vdevs = []transport.Vdev{
		Device(server.Function, server.Name, server.MAC, s.MTU, true),
		Device(client.Function, client.Name, client.MAC, s.MTU, false),
	}
	build.Report.Vdevs[0].Dir, build.Report.Vdevs[1].Dir = server.Dir, client.Dir
	build.Report.Vdevs[0].PeerConnects = others
	letIn := host.LetIn
	if client.Runtime.Contained() {
		build.Report.Vdevs[1].Peer = server.Dir
	} else {
		build.Report.Vdevs[1].Dir = server.Dir
		letIn = host.ShareDir
	}
	if others {
		build.Steps = append(build.Steps, step.Step{
			Name: s.StepName(Name, "let "+client.Function+" into the directory of "+server.Function),
			Do:   func(context.Context) error { return letIn(server.Dir, client.User) },
		})
	}
	return build, nil
}

// Device is the device of an end. The server creates the socket in its Dir. net_memif requires
// that the client can write to the directory of its path. A container gets a directory of its
// own with a link to the socket: in the server's, it could take the socket's place.
func Device(function, port string, mac net.HardwareAddr, mtu int, server bool) dpdk.Vdev {
	role, awaits := "role=client,zero-copy=yes", dpdk.MemifSocket
	if server {
		role, awaits = "role=server", ""
	}
	return dpdk.Vdev{
		Function: function, Port: port, Driver: dpdk.NetMemif,
		Options: fmt.Sprintf("socket={dir}/%s,socket-abstract=no,id=0,%s,mac=%s", dpdk.MemifSocket, role, mac),
		Awaits:  awaits,
		// Zero-copy sends the client's memory, file by file.
		SingleFileSegments: true,
		NeedsFile:          mtu > stockMTU,
	}
}

// roles chooses the end that listens: the first if both can. Only the socket's
// own user and root can connect; any other user needs a listener started with
// umask 0. The listener must not wait for the client over another link.
func roles(a, b transport.End) (server, client transport.End, err error) {
	if a.Function == b.Function {
		return a, b, fmt.Errorf("both its ports belong to function %s, which would wait for itself to listen; use another transport, such as shm", a.Function)
	}
	circular := error(nil)
	for _, try := range [][2]transport.End{{a, b}, {b, a}} {
		server, client = try[0], try[1]
		switch opens := server.User == client.User || client.Runtime == chain.RuntimeProcess || server.Runtime == chain.RuntimeRunc; {
		case opens && !slices.Contains(server.StartsAfter, client.Function):
			return server, client, nil
		case opens:
			circular = fmt.Errorf("each of %s and %s would wait for the other to listen: %s does so over another link, and cannot open its own socket to %s; use runtime runc for both, or another transport for one of the links",
				server.Function, client.Function, server.Function, client.Function)
		}
	}
	if circular != nil {
		return a, b, circular
	}
	return server, client, fmt.Errorf("%s and %s are different users of the host (%d and %d), and neither can open its socket to the other; use runtime runc for one, or the same USER in both images",
		a.Function, b.Function, a.User, b.User)
}
