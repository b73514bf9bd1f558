// SPDX-License-Identifier: Apache-2.0

package ovsdpdk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"github.com/drayage/dray/internal/spec/library"
)

// ports is how the switch reaches applications.
type ports interface {
	// probe reports a missing prerequisite on this host.
	probe() error
	// check rejects specs that cannot be built, in addition to transport.Check.
	check(s transport.Spec) error
	// prepare adds to the build what the switch needs before it starts, and
	// the applications' devices.
	prepare(b *transport.Build, driver string, s transport.Spec) error
	// binds are the host directories visible to the switch.
	binds(s transport.Spec) []sidecar.Bind
	// files are the host users whose sockets the switch must be able to open.
	files(s transport.Spec) []int
	// eal are EAL arguments.
	eal() ([]string, error)
	// options are the options of the switch's interface at end i.
	options(s transport.Spec, i int) []string
}

// vhostPorts are vhost-user devices, which connect to the applications' sockets.
type vhostPorts struct{}

func (vhostPorts) probe() error { return nil }

func (vhostPorts) check(transport.Spec) error { return nil }

func (vhostPorts) prepare(b *transport.Build, driver string, s transport.Spec) error {
	for i, e := range s.Ends {
		if vhost.Reached(e) {
			b.Report.Vdevs = append(b.Report.Vdevs, vhost.Vdev(s, i))
		}
	}
	b.Steps = append(b.Steps, vhost.Admit(driver, s)...)
	return nil
}

func (vhostPorts) binds(s transport.Spec) []sidecar.Bind { return vhost.Binds(s) }

func (vhostPorts) files(s transport.Spec) []int { return vhost.Users(s) }

func (vhostPorts) eal() ([]string, error) { return nil, nil }

func (vhostPorts) options(s transport.Spec, i int) []string {
	if hasInterface(s.Ends[i]) {
		return nil // of the default kind, and with the interface's MTU
	}
	return []string{fmt.Sprintf("mtu_request=%d", s.MTU), "type=dpdkvhostuserclient", "options:vhost-server-path=" + vhost.Socket(i)}
}

// drayPorts are ports of the port library, opened by its DPDK driver: the
// broker joins each end to the switch by a shared-memory link.
type drayPorts struct{}

// Paths, inside the switch's container, of its ports' sockets and the driver's folder.
const (
	portsInside  = "/ports"
	driverInside = "/driver"
)

func (drayPorts) socket(s transport.Spec, i int) string {
	return filepath.Join(s.Dir, "ports", portName(i))
}

func (drayPorts) probe() error {
	if _, err := dpdk.FindDriver(); err != nil {
		var lacks *library.Error
		if errors.As(err, &lacks) {
			return &host.Unsupported{What: NameDray, Why: lacks.Reason, Fix: lacks.Fix}
		}
		return err
	}
	return host.ProbeSealedMemory()
}

func (drayPorts) check(s transport.Spec) error {
	if s.Move {
		return fmt.Errorf("a link with a switch cannot be moved or replaced while the chain is up; dray down, then dray up")
	}
	return nil
}

func (p drayPorts) prepare(b *transport.Build, driver string, s transport.Spec) error {
	dir := filepath.Dir(p.socket(s, 0))
	b.Steps = append(b.Steps, step.Step{
		Name:  s.StepName(driver, "create the directory of the switch's ports"),
		Makes: []step.Resource{host.DirResource(dir)},
		Do: func(context.Context) error {
			return host.MakeDir(dir, 0o711)
		},
	})
	for i, e := range s.Ends {
		half := s
		half.Link = fmt.Sprintf("%s.%d", s.Link, i+1)
		half.Ends = []transport.End{e, {
			Function: vswitchd, Name: portName(i), MAC: s.SwitchMAC(portName(i)), Queues: e.Queues,
			Face: chain.FaceNative, Socket: p.socket(s, i), User: sidecar.UID(vhost.Owner(s)),
		}}
		shapeHalf(&half)
		if err := native.Serve(b, driver, half, broker.KindShm, nil); err != nil {
			return err
		}
	}
	return nil
}

// shapeHalf gives the link's qdisc to the switch's port, if it is at the switch, else to
// the function's.
func shapeHalf(half *transport.Spec) {
	shape, port, sw := half.Shape, &half.Ends[0], &half.Ends[1]
	half.Shape = nil
	if shape.AtSwitch() {
		sw.Shape = shape
	} else {
		port.Shape = cmp.Or(port.Shape, shape)
	}
}

func (p drayPorts) binds(s transport.Spec) []sidecar.Bind {
	driver, _ := dpdk.FindDriver() // if there is none, eal reports that first
	return []sidecar.Bind{
		{Source: filepath.Dir(p.socket(s, 0)), Target: portsInside},
		{Source: filepath.Dir(driver), Target: driverInside},
	}
}

// files: the broker creates the sockets for the switch's own user.
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
