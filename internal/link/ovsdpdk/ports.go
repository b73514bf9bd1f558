// SPDX-License-Identifier: Apache-2.0

package ovsdpdk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/sidecar"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/native"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/vhost"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
)

// ports is the way by which the switch reaches applications.
type ports interface {
	// probe reports what this host lacks for it.
	probe() error
	// check refuses what cannot be built beyond what transport.Check refuses.
	check(s transport.Spec) error
	// prepare adds to the build what the switch needs before it starts, and how the
	// applications attach.
	prepare(b *transport.Build, driver string, s transport.Spec)
	// binds are what the switch sees of the host for it.
	binds(s transport.Spec) []sidecar.Bind
	// files are the users of the host whose sockets it must be able to open.
	files(s transport.Spec) []int
	// eal are arguments of EAL.
	eal() ([]string, error)
	// options are those of the switch's interface at end i.
	options(s transport.Spec, i int) []string
}

// vhostPorts are vhost-user devices, which connect to the applications' sockets.
type vhostPorts struct{}

func (vhostPorts) probe() error { return nil }

func (vhostPorts) check(transport.Spec) error { return nil }

func (vhostPorts) prepare(b *transport.Build, driver string, s transport.Spec) {
	for i, e := range s.Ends {
		if vhost.Reached(e) {
			b.Report.Vdevs = append(b.Report.Vdevs, vhost.Vdev(s, i))
		}
	}
	b.Steps = append(b.Steps, vhost.Admit(driver, s)...)
}

func (vhostPorts) binds(s transport.Spec) []sidecar.Bind { return vhost.Binds(s) }

func (vhostPorts) files(s transport.Spec) []int { return vhost.Users(s) }

func (vhostPorts) eal() ([]string, error) { return nil, nil }

func (vhostPorts) options(s transport.Spec, i int) []string {
	if hasInterface(s.Ends[i]) {
		return nil // of the usual kind, and with the MTU that the interface has
	}
	return []string{fmt.Sprintf("mtu_request=%d", s.MTU), "type=dpdkvhostuserclient", "options:vhost-server-path=" + vhost.Socket(i)}
}

// drayPorts are ports of the port library, opened by its DPDK driver: the broker
// joins each end to the switch by a link of shared memory.
type drayPorts struct{}

// Where the switch sees the sockets of its ports, and the folder of the driver.
const (
	portsInside  = "/ports"
	driverInside = "/driver"
)

// maxSocketPath is the longest path of a socket in bytes (unix(7)), without NUL.
const maxSocketPath = 107

func (drayPorts) socket(s transport.Spec, i int) string {
	return filepath.Join(s.Dir, "ports", portName(i))
}

func (drayPorts) probe() error {
	if _, err := dpdk.FindDriver(); err != nil {
		var lacks *dpdk.DriverError
		if errors.As(err, &lacks) {
			return &host.Unsupported{What: NameDray, Why: lacks.Reason, Fix: lacks.Fix}
		}
		return err
	}
	return host.ProbeSealedMemory()
}

func (p drayPorts) check(s transport.Spec) error {
	if s.Move {
		return fmt.Errorf("a link with a switch cannot take the place of another, nor be replaced; dray down, then dray up")
	}
	if path := p.socket(s, len(s.Ends)-1); len(path) > maxSocketPath {
		return fmt.Errorf("the path of a socket, %s, is longer than %d bytes: use shorter names for chain and link, or set DRAY_STATE to a shorter directory", path, maxSocketPath)
	}
	return nil
}

func (p drayPorts) prepare(b *transport.Build, driver string, s transport.Spec) {
	dir := filepath.Dir(p.socket(s, 0))
	b.Steps = append(b.Steps, step.Step{
		Name:  s.StepName(driver, "create the directory of the switch's ports"),
		Makes: []step.Resource{host.DirResource(dir)},
		Do: func(context.Context) error {
			if err := os.Mkdir(dir, 0o711); err != nil {
				return err
			}
			return os.Chmod(dir, 0o711) // whatever the umask
		},
	})
	for i, e := range s.Ends {
		half := s
		half.Link = fmt.Sprintf("%s.%d", s.Link, i+1)
		half.Ends = []transport.End{e, {
			Function: vswitchd, Name: portName(i), MAC: s.SwitchMAC(portName(i)), Queues: e.Queues,
			Face: chain.FaceNative, Socket: p.socket(s, i), User: sidecar.UID(vhost.Owner(s)),
		}}
		native.Serve(b, driver, half, broker.KindShm, nil)
	}
}

func (p drayPorts) binds(s transport.Spec) []sidecar.Bind {
	driver, _ := dpdk.FindDriver() // if there is none, eal says so before this is used
	return []sidecar.Bind{
		{Source: filepath.Dir(p.socket(s, 0)), Target: portsInside},
		{Source: filepath.Dir(driver), Target: driverInside},
	}
}

// files: the broker makes the sockets for the switch's own user.
func (drayPorts) files(transport.Spec) []int { return nil }

func (drayPorts) eal() ([]string, error) {
	driver, err := dpdk.FindDriver()
	if err != nil {
		return nil, err
	}
	return []string{"-d", driverInside + "/" + filepath.Base(driver)}, nil
}

// options: Open vSwitch expects the data of a packet inside its own buffer.
func (drayPorts) options(s transport.Spec, i int) []string {
	return []string{fmt.Sprintf("mtu_request=%d", s.MTU), "type=dpdk", fmt.Sprintf("options:dpdk-devargs=%s%d,dir=%s,port=%s,rx=copy", dpdk.NetDray, i, portsInside, portName(i)),
		fmt.Sprintf("options:n_rxq=%d", vhost.Queues(s.Ends[i]))}
}
